"""A real device: one key file, index 0."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from protocols.errors import SettingsError
from servers.key_files import keyring_in, secret_in


def test_a_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    keyring_in(tmp_path / "device.key")
    assert (tmp_path / "device.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["device.key"], "nor is there a second copy of it"


@pytest.mark.parametrize("content", ["damaged", "", "00ff", "ab" * 15])
def test_a_key_file_that_holds_less_than_a_key_is_refused_and_never_replaced(tmp_path: Path, content: str) -> None:
    """Keys of any use are made here: with an empty one, anybody could close periods and take noise away."""
    path = tmp_path / "clock.key"
    path.write_text(content)
    with pytest.raises(SettingsError, match=r"clock\.key does not hold a key"):
        secret_in(path)
    assert path.read_text() == content


def test_whoever_needs_a_key_at_the_same_time_gets_the_same_one(tmp_path: Path) -> None:
    """As in containers that share a volume, all have the same process id."""
    with ThreadPoolExecutor(8) as threads:
        for number in range(20):
            start = Barrier(8)
            keys = {threads.submit(_after, start, tmp_path / f"{number}.key") for _ in range(8)}
            assert len({key.result() for key in keys}) == 1


def _after(start: Barrier, path: Path) -> bytes:
    start.wait(timeout=60)
    return secret_in(path)
