"""Data directories: what is in them, whose it is, where commands look for them, and those of the release before."""

import fcntl
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hearsay.cli import app
from hearsay.data_directory import DataDirectory
from hearsay.running.collecting import collect
from memo_store.sealing import Sealer
from producers.events.choosing import event_type
from producers.events.sending import Totals
from producers.events.spool import Spool
from producers.replay import write_checkpoint
from producers.simulation import Simulation
from producers.sinks import DirectorySink
from protocols.errors import HearsayError, ResultsError, ScenarioError, ServerUnavailable, SettingsError
from servers.private_files import lock_directory, private_directory
from servers.settings import Settings
from tests.helpers.nursery import run as hearsay
from tests.producers.populations import KEYRING, Alternating, scheme


def test_secrets_are_made_once_and_the_store_of_new_devices_is_marked_as_new(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    assert data.clock_key() == DataDirectory(tmp_path).clock_key() != data.presence_key()
    data.fleet_keyring()
    assert data.new_store_mark.exists()
    data.new_store_mark.unlink()
    data.fleet_keyring()
    assert not data.new_store_mark.exists(), "the devices are not new: an empty store has lost their history"


def test_devices_that_report_to_one_destination_cannot_report_to_another(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.record_destination("week", "a cluster")
    data.record_destination("week", "a cluster, number 7")
    data.record_destination("week", "a cluster")
    data.record_destination("other", "this process")
    for elsewhere in ("a cluster, number 8", "this process"):
        with pytest.raises(SettingsError, match=f"report to a cluster, number 7 for survey 'week', not to {elsewhere}"):
            DataDirectory(tmp_path).check_destination("week", elsewhere)


@pytest.mark.parametrize("left", ["", "\n", "a clus"], ids=["emptied", "a line end", "half written"])
@pytest.mark.parametrize("file", ["week.destination", "week.population"])
def test_a_note_that_is_damaged_is_refused_and_not_taken_for_none(tmp_path: Path, file: str, left: str) -> None:
    (tmp_path / file).write_text(left)
    for check in (DataDirectory(tmp_path).check_destination, DataDirectory(tmp_path).check_population):
        if check.__name__.removeprefix("check_") in file:
            with pytest.raises(SettingsError, match=f"{file} is damaged"):
                check("week", "a cluster")
    assert (tmp_path / file).read_text() == left


@pytest.fixture
def _umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    """The mode of a directory and of all in it, sockets aside: Redis gives its socket the mode that it is told."""
    found = [path for path in (directory, *directory.rglob("*")) if not path.is_socket()]
    return {str(path.relative_to(directory)): stat.S_IMODE(path.stat().st_mode) for path in found}


@pytest.mark.usefixtures("_umask")
def test_everything_in_a_data_directory_is_for_its_owner_only(tmp_path: Path) -> None:
    survey, data = scheme().survey, DataDirectory(tmp_path / "data")
    data.record_population(survey.id, "population")
    data.add_presence_losses(survey.id, (1,))
    with collect(data, survey, Settings(), None) as collection:
        Simulation(collection.memos, collection.sink, Alternating(40, 1), collection.clock_key).run()
        running = modes(data.root)
    left = modes(data.root)
    assert {"collector/results.sqlite", "collector/log/0.log", "redis", f"{survey.id}.destination"} <= set(left)
    assert [path for path in left if "appendonly" in path]
    assert "collector/results.sqlite-wal" in running
    assert not {path: oct(mode) for path, mode in (running | left).items() if mode & 0o077}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777], ids=oct)
def test_a_data_directory_and_its_parents_are_for_their_owner_only(tmp_path: Path, umask: int) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(umask)
    try:
        private_directory(tmp_path / "hearsay-data" / "survey" / "collector")
    finally:
        os.umask(before)
    found = modes(tmp_path)
    assert found.pop(".") == 0o755, "what exists stays as it is"
    assert len(found) == 3 and set(found.values()) == {0o700}


@pytest.mark.usefixtures("_umask")
def test_captured_reports_and_the_notes_of_a_replay_are_for_their_owner_only(tmp_path: Path) -> None:
    sink = DirectorySink(tmp_path / "capture", 2, scheme())
    sink.send(0, "kind", b"value")
    sink.flush()
    write_checkpoint(tmp_path / "replay" / "one.json", Totals())
    spool = Spool(tmp_path / "spool", 1, Sealer(KEYRING, "events a", "0"))
    spool.add(np.zeros(3, dtype=event_type(1)), np.zeros(3, dtype=np.int64))
    found = modes(tmp_path)
    spool.close()
    del found["."]
    assert {"capture/00000000.arrow", "replay/one.json", "spool/0.events"} <= set(found)
    assert not {path: oct(mode) for path, mode in found.items() if mode & 0o077}


def test_a_directory_that_is_replaced_while_it_is_locked_is_locked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure would be a lock on a directory that is gone, beside one of another process on its successor."""
    directory, lock = tmp_path / "data", fcntl.flock
    directory.mkdir()

    def replaced(descriptor: int, how: int) -> None:
        if not (tmp_path / "old").exists():
            directory.rename(tmp_path / "old")
            directory.mkdir()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", replaced)
    held = lock_directory(directory)
    assert os.path.samestat(os.fstat(held), directory.stat())
    with pytest.raises(BlockingIOError):
        lock_directory(directory)
    os.close(held)
    os.close(lock_directory(directory))


@pytest.mark.parametrize("arguments", [("memo", "stats"), ("demo", "--devices", "60")], ids=" ".join)
def test_a_data_directory_of_version_0_1_is_not_gone_on_with(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Failure would look like: a traceback, or numbers from a state that is read as something else than it was."""
    with tarfile.open(Path(__file__).parents[1] / "states" / "data-of-0.1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    refused = hearsay(*arguments, "--data", str(tmp_path))
    assert refused.returncode == 1 and "another release" in refused.stderr and "hint:" in refused.stderr


SURVEY = """{id: buttons, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2, clock: source,
 attributes: [{name: colour, values: [red, green]}]}"""
RUN = ("run", "survey.yaml", "--devices", "40", "--periods", "1")


@pytest.fixture
def _survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("survey.yaml").write_text(SURVEY)


def type_in(*words: str) -> Result:
    return CliRunner().invoke(app, words, env={"HEARSAY_CLOCK_KEY": "5e" * 32})


def refused(error: type[HearsayError], *words: str) -> str:
    result = type_in(*words)
    assert isinstance(result.exception, error), result.output
    return f"{result.exception.message}: {result.exception.hint}"


@pytest.mark.usefixtures("_survey")
def test_a_run_is_read_where_it_was_written() -> None:
    assert "no results in hearsay-data" in refused(ResultsError, "report")
    done = type_in(*RUN)
    assert done.exit_code == 0, done.exception
    assert "Next: hearsay report buttons\n" in done.output and "hearsay-data/buttons/reports" in done.output
    for words in (["report"], ["report", "buttons"], ["memo", "stats"]):
        assert type_in(*words).exit_code == 0, words
    assert "here: buttons" in refused(ResultsError, "report", "other")
    Path("hearsay-data/others/collector").mkdir(parents=True)
    assert "give the id of one: buttons, others" in refused(ResultsError, "report")
    assert type_in("report", "buttons").exit_code == 0


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ServerUnavailable, ("--kafka", "127.0.0.1:1")),
        (ScenarioError, ("--scenario", "virtual-humans")),
        (HearsayError, ("--scenario", "nothing")),
    ],
)
@pytest.mark.usefixtures("_survey")
def test_a_refused_run_leaves_nothing_behind(error: type[HearsayError], words: tuple[str, ...]) -> None:
    refused(error, *RUN, *words)
    assert [path.name for path in Path().iterdir()] == ["survey.yaml"]


@pytest.mark.usefixtures("_survey")
def test_a_run_that_was_refused_late_leaves_what_was_there_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memo store cannot be reached, after the collector was opened."""
    Path("hearsay-data").mkdir()
    Path("hearsay-data/notes").touch()
    monkeypatch.setenv("HEARSAY_REDIS_URL", "redis://127.0.0.1:1")
    refused(HearsayError, *RUN)
    assert [path.name for path in Path("hearsay-data").iterdir()] == ["notes"]
    monkeypatch.delenv("HEARSAY_REDIS_URL")
    assert type_in(*RUN, "--seed", "7").exit_code == 0
