"""Published results are read back in the same way from every store."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from protocols.errors import ResultsError
from protocols.wire import CONTENT_TYPE_HEADER
from stream_app.finals import FinalKey
from stream_app.local import LocalStore
from stream_app.log.codec import compress
from stream_app.log.flushes import Output
from tests.helpers.published import Memory
from views.reading import Results
from views.results import HISTOGRAMS, LIVE, MOBILITY, Live
from views.view import View

Write = Callable[..., LocalStore]


@pytest.fixture
def in_a_directory(tmp_path: Path) -> Iterator[Write]:
    """Writes messages to a local store."""
    with closing(LocalStore.to_write(tmp_path)) as store:

        def write(*messages: Output) -> LocalStore:
            store.write(messages)
            return store

        yield write


def live(closed_through: int, survey: str = "s") -> Output:
    status = Live(survey=survey, closed_through=closed_through, open=(), rejects={}, lates={})
    (message,) = LIVE.messages(FinalKey(survey), status)
    return message


def final(topic: View[Any], survey: str, period: int, value: bytes) -> Output:
    return Output(topic.name, FinalKey(survey, period).encode(), value)


def test_results_come_in_the_order_of_their_periods(in_a_directory: Write) -> None:
    published = [final(HISTOGRAMS, "s", period, b"%d" % period) for period in (10, 9, 100)]
    for results in (Memory(published), Results(in_a_directory(*published))):
        assert [*results.values(HISTOGRAMS).values()] == [b"9", b"10", b"100"]


def test_of_replaced_results_the_newest_is_read(in_a_directory: Write) -> None:
    published = [live(0), live(5, "t"), live(1)]
    for results in (Memory(published), Results(in_a_directory(*published))):
        newest = results.live("s")
        assert newest is not None and newest.closed_through == 1
        assert results.live("unknown") is None


def test_a_final_that_is_repeated_is_read_once_and_one_that_changed_is_an_error() -> None:
    first, changed = (final(MOBILITY, "s", 3, value) for value in (b"one", b"other"))
    assert Memory([first, first]).values(MOBILITY) == {("s", 3): b"one"}
    with pytest.raises(ResultsError, match="topic mobility, key s/3: published twice with different values"):
        Memory([first, changed]).values(MOBILITY)


def test_a_newer_schema_version_is_refused_and_the_error_says_to_upgrade() -> None:
    newer = LIVE.schema_version + 1
    value = f'{{"schema_version":{newer},"survey":"s","a field that is not known here":[]}}'.encode()
    with pytest.raises(ResultsError, match=f"topic live, key s: schema version {newer}") as caught:
        Memory([Output(LIVE.name, b"s", compress(value))]).live("s")
    assert "upgrade" in caught.value.hint


WRONG = [compress(text) for text in (b"{}", b"[]", b"no JSON", b'{"schema_version":2}', b'{"schema_version":null}')]
ODD = compress(b'{"schema_version":2,"survey":"s","pieces":7}')


@pytest.mark.parametrize("value", [*WRONG, ODD, ODD[:-9], b"not compressed"])
def test_a_record_that_is_no_result_is_named(value: bytes) -> None:
    with pytest.raises(ResultsError, match="topic histograms, key s/4: the record is not a histogram result"):
        Memory([final(HISTOGRAMS, "s", 4, value)]).histograms("s")


@pytest.mark.parametrize("key", [b"s", b"s/x", b"\xff/1", b"s/1#x"])
def test_a_key_that_names_no_period_is_an_error_that_shows_it(key: bytes) -> None:
    with pytest.raises(ResultsError, match="topic histograms: a record has the key") as caught:
        Memory([Output(HISTOGRAMS.name, key, b"{}")]).histograms("s")
    assert repr(key) in caught.value.message


def test_a_directory_replaces_a_live_result_together_with_its_headers(in_a_directory: Write) -> None:
    old, new = (Output(LIVE.name, b"s", name, ((CONTENT_TYPE_HEADER, name),)) for name in (b"old", b"new"))
    assert [*in_a_directory(old, new).messages(LIVE.name)] == [new]


def test_a_directory_keeps_the_first_final(in_a_directory: Write) -> None:
    first, changed = (final(MOBILITY, "s", 3, value) for value in (b"one", b"other"))
    assert Results(in_a_directory(first, changed)).values(MOBILITY) == {("s", 3): b"one"}


def test_a_survey_is_not_mistaken_for_one_whose_name_begins_the_same() -> None:
    results = Memory(final(HISTOGRAMS, survey, 0, survey.encode()) for survey in ("s", "s2", "as"))
    assert results.values(HISTOGRAMS, "s") == {("s", 0): b"s"}


def test_a_reader_of_a_directory_finds_what_came_after_an_id(in_a_directory: Write) -> None:
    store = in_a_directory(live(0), live(5, "t"), final(MOBILITY, "s", 0, b"one"))
    before = store.after(0)
    ids = [id for id, _ in before]
    assert ids == sorted(set(ids)) and [message.key for _, message in before] == [b"s", b"t", b"s/0"]
    in_a_directory(live(1), final(MOBILITY, "s", 0, b"one"))  # the first replaces, the second is there already
    assert [message.key for _, message in store.after(ids[-1])] == [b"s"]
    assert [message.key for _, message in store.after(0)] == [b"t", b"s/0", b"s"]
