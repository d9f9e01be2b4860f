"""A capture holds exactly what was confirmed, and is sent on exactly once, in order."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from memo_store.survey_memos import SurveyMemos
from producers.simulation import Simulation
from producers.sinks import SCHEMA, DirectorySink, Sink, captured_files, read_capture, send_capture
from protocols.errors import DeliveryError, FingerprintChanged, ReplayError, SettingsError, Stopped
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.helpers.sinks import KeepingSink
from tests.memo_store.surveys import empty
from tests.producers.populations import CLOCK_KEY, KEYRING, Alternating, scheme

Capture = Callable[[Sink], None]


@pytest.fixture
def capture(open_memos: Callable[[Respondent], SurveyMemos], redis_url: str) -> Capture:
    """Run a fleet into a sink, every time as if it were the first."""

    def run(sink: Sink) -> None:
        empty(redis_url)
        survey = scheme()
        Simulation(open_memos(Respondent(survey, KEYRING)), sink, Alternating(), CLOCK_KEY).run()

    return run


def test_sending_goes_on_with_the_file_that_was_not_confirmed(tmp_path: Path, capture: Capture) -> None:
    direct, failing = KeepingSink(), KeepingSink(fail_after=12)
    capture(direct)
    capture(DirectorySink(tmp_path, 4, scheme()))
    with pytest.raises(DeliveryError):
        send_capture(tmp_path, failing)
    rest = KeepingSink()
    sent = send_capture(tmp_path, rest)
    assert rest.records == direct.records[-len(rest.records) :]
    assert len(failing.records) + len(rest.records) - len(direct.records) <= 8  # twice: one file, of two attributes
    assert sent.files == sent.of_files == len(captured_files(tmp_path))


def test_a_wish_to_stop_is_granted_between_files_and_what_is_sent_is_what_the_fleet_made(
    tmp_path: Path, capture: Capture
) -> None:
    capture(DirectorySink(tmp_path, 4, scheme()))
    some = KeepingSink()
    with pytest.raises(Stopped, match="send it again"):
        send_capture(tmp_path, some, stop=lambda: len(some.records) > 5)
    rest, direct = KeepingSink(), KeepingSink()
    sent = send_capture(tmp_path, rest)
    capture(direct)
    assert some.records + rest.records == direct.records
    assert (sent.records, sent.bytes) == (len(rest.records), sum(len(value) for *_, value in rest.records))


def test_what_was_not_flushed_is_not_captured(tmp_path: Path) -> None:
    sink = DirectorySink(tmp_path, 2, scheme())
    sink.send(0, "kind", b"confirmed")
    sink.flush()
    sink.send(1, "kind", b"lost")
    sink.close()
    (tmp_path / "00000001.arrow.unfinished").write_bytes(b"half a fi")
    later = KeepingSink(2)
    send_capture(tmp_path, later)
    assert later.records == [(0, "kind", b"confirmed")]


def keep(sink: DirectorySink, value: bytes) -> None:
    sink.send(0, "kind", value)
    sink.flush()


def test_files_that_were_sent_may_be_removed(tmp_path: Path) -> None:
    """Failure would look like: the third record written over the second, or taken for one that was sent."""
    sink = DirectorySink(tmp_path, 2, scheme())
    keep(sink, b"first")
    send_capture(tmp_path, KeepingSink(2))
    keep(sink, b"second")
    captured_files(tmp_path)[0].unlink()
    keep(DirectorySink(tmp_path, 2, scheme()), b"third")
    later = KeepingSink(2)
    sent = send_capture(tmp_path, later)
    assert [value for *_, value in later.records] == [b"second", b"third"]
    assert (sent.files, sent.of_files) == (2, 2)
    for path in captured_files(tmp_path):
        path.unlink()
    keep(DirectorySink(tmp_path, 2, scheme()), b"fourth")
    assert send_capture(tmp_path, later).records == 1
    assert later.records[-1][2] == b"fourth"


def test_two_captures_into_one_directory_do_not_replace_each_other(tmp_path: Path) -> None:
    one, other = DirectorySink(tmp_path, 2, scheme()), DirectorySink(tmp_path, 2, scheme())
    keep(one, b"first")
    with pytest.raises(DeliveryError, match="another process captures into"):
        keep(other, b"second")


def test_another_number_of_partitions_other_terms_and_a_damaged_note_are_refused(tmp_path: Path) -> None:
    keep(DirectorySink(tmp_path, 2, scheme()), b"first")
    with pytest.raises(SettingsError, match="captured for 2 partitions, not 3"):
        DirectorySink(tmp_path, 3, scheme())
    with pytest.raises(SettingsError, match="captured for 2 partitions, not 3"):
        send_capture(tmp_path, KeepingSink(3))
    with pytest.raises(FingerprintChanged, match="'buttons' under other terms"):
        DirectorySink(tmp_path, 2, scheme("minimum: 5,"))
    (tmp_path / "sent.json").write_text("{")
    with pytest.raises(ReplayError, match=r"sent\.json is damaged"):
        send_capture(tmp_path, KeepingSink(2))


def test_a_capture_carries_its_surveys(tmp_path: Path) -> None:
    first, other = scheme(), Scheme(scheme().survey.model_copy(update={"id": "other", "title": "Knöpfe"}))
    for captured in (first, other, first):
        DirectorySink(tmp_path, 2, captured)
    kept = read_capture(tmp_path).surveys
    assert {id: (entry.survey, entry.fingerprint) for id, entry in kept.items()} == {
        captured.survey.id: (captured.survey, captured.fingerprint) for captured in (first, other)
    }


def test_damage_anywhere_in_a_file_is_named_or_leaves_it_whole(tmp_path: Path) -> None:
    """Failure would look like: Arrow's own error, a crash of the process, or a record for no partition."""
    sink = DirectorySink(tmp_path, 4, scheme())
    for partition in range(4):
        sink.send(partition, "kind", bytes(50))
    sink.flush()
    (path,) = captured_files(tmp_path)
    content, refused = path.read_bytes(), 0
    for place in range(0, len(content), 3):  # every byte of a word of eight is hit somewhere
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        later = KeepingSink(4)
        try:
            send_capture(tmp_path, later)
        except ReplayError as error:
            assert str(path) in str(error)
            refused += 1
        else:
            assert [partition < 4 for partition, *_ in later.records] == [True] * 4
            (tmp_path / "sent.json").unlink()
    assert refused > 130


def test_a_file_without_records_is_refused(tmp_path: Path) -> None:
    DirectorySink(tmp_path, 4, scheme())
    with pa.OSFile(str(tmp_path / "00000000.arrow"), "wb") as file, pa.ipc.new_file(file, SCHEMA):
        pass
    with pytest.raises(ReplayError, match="cannot be read"):
        send_capture(tmp_path, KeepingSink())
