"""A real device: one key file, index 0."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from memo_store.survey_memos import SurveyMemos
from protocols.errors import SettingsError
from protocols.respondent import Respondent
from servers.key_files import keyring_in, secret_in
from tests.memo_store.surveys import devices, respondent


def test_a_device_keeps_its_memo_as_long_as_it_keeps_its_key_file(
    tmp_path: Path, open_memos: Callable[[Respondent], SurveyMemos]
) -> None:
    scheme, itself = respondent(k=100).scheme, devices(1)
    question, value = scheme.questions[0], np.array([42])

    def memo(file: str, period: int) -> list[int]:
        memos = open_memos(Respondent(scheme, keyring_in(tmp_path / file)))
        answer: list[int] = memos.lookup(question, itself, value, period)[0].tolist()
        return answer

    assert memo("mine.key", 0) == memo("mine.key", 1)
    assert memo("mine.key", 2) != memo("another.key", 2)


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
