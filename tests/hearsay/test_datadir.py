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


def test_the_store_of_new_devices_is_unvouched_until_the_mark_is_taken_away(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.fleet_keyring()
    assert data.unvouched.exists()
    data.unvouched.unlink()
    data.fleet_keyring()
    assert not data.unvouched.exists(), "devices with a past: an empty store has lost it"


def test_lost_presence_is_noted_for_later_reports(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.note_lost_presence(())
    assert data.presence_losses == set()
    data.note_lost_presence((4,))
    data.note_lost_presence((9,))
    assert DataDirectory(tmp_path).presence_losses == {4, 9}


def test_devices_that_report_to_one_place_are_not_made_to_report_to_another(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.reports_to("week", "a cluster")
    data.reports_to("week", "a cluster, number 7")
    data.reports_to("week", "a cluster")
    data.reports_to("other", "this process")
    for elsewhere in ("a cluster, number 8", "this process"):
        with pytest.raises(SettingsError, match=f"report to a cluster, number 7 for survey 'week', not to {elsewhere}"):
            DataDirectory(tmp_path).reports_to("week", elsewhere)
