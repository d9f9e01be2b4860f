"""The data directory keeps its secrets once and for all."""

from pathlib import Path

import pytest

from hearsay.running.data_directory import DataDirectory
from protocols.errors import SettingsError


def test_a_secret_is_made_once_and_kept(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path / "data").clock_key()
    assert len(first) == 32
    assert DataDirectory(tmp_path / "data").clock_key() == first


def test_a_secret_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    DataDirectory(tmp_path).fleet_keyring()
    assert (tmp_path / "fleet.key").stat().st_mode & 0o777 == 0o600


def test_each_purpose_has_its_own_secret(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    assert data.clock_key() != data.presence_key()


def test_a_damaged_key_is_refused_rather_than_replaced(tmp_path: Path) -> None:
    (tmp_path / "fleet.key").write_text("not hexadecimal")
    with pytest.raises(SettingsError, match=r"fleet\.key"):
        DataDirectory(tmp_path).fleet_keyring()


def test_the_store_of_new_devices_is_marked_as_new_until_the_mark_is_removed(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.fleet_keyring()
    assert data.new_store_mark.exists()
    data.new_store_mark.unlink()
    data.fleet_keyring()
    assert not data.new_store_mark.exists(), "the devices are not new: an empty store has lost their history"


def test_lost_presence_is_recorded_for_later_reports(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.add_presence_losses("week", ())
    assert data.presence_losses("week") == set()
    data.add_presence_losses("week", (4,))
    data.add_presence_losses("week", (4, 9))
    assert DataDirectory(tmp_path).presence_losses("week") == {4, 9}
    assert DataDirectory(tmp_path).presence_losses("month") == set()


def test_devices_that_report_to_one_destination_cannot_report_to_another(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.check_destination("week", "a cluster")
    data.check_destination("week", "a cluster, number 7")
    data.check_destination("week", "a cluster")
    data.check_destination("other", "this process")
    for elsewhere in ("a cluster, number 8", "this process"):
        with pytest.raises(SettingsError, match=f"report to a cluster, number 7 for survey 'week', not to {elsewhere}"):
            DataDirectory(tmp_path).check_destination("week", elsewhere)
