"""Reading results: in their order, whole, and of this version."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic_core import to_json

from protocols.errors import ResultsError, UnreadableRecord
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from stream_app.finals import Final, FinalKey, NotCounted, Status
from stream_app.finals.final import message
from stream_app.local import LocalStore
from stream_app.log.codec import VALUE_BYTES, compress
from stream_app.log.flushes import FINALS, OPEN, Output
from tests.helpers.published import Kept, Memory
from tests.helpers.surveys import of_size, scheme_with
from views.encoding import decode
from views.reading import Results
from views.results import HISTOGRAMS, LIVE, MOBILITY, Live
from views.view import View, is_piece

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
def test_a_record_that_is_no_result_is_left_out_and_named_once(value: bytes) -> None:
    good = [made for made in published_results(2) if made.topic == HISTOGRAMS.name]
    left_out: list[UnreadableRecord] = []
    results = Results(Memory([*good, final(HISTOGRAMS, "s", 4, value)]).store, left_out.append)
    for _ in range(2):
        assert [histogram.period for histogram in results.histograms("s")] == [0, 1], "one bad record costs its period"
    (error,) = left_out
    assert error.message.startswith("topic histograms, key s/4: the record is not a histogram result")


@pytest.mark.parametrize("key", [b"s", b"s/x", b"\xff/1", b"s/1#x"])
def test_a_key_that_names_no_period_is_left_out_and_shown(key: bytes) -> None:
    good = [made for made in published_results(1) if made.topic == HISTOGRAMS.name]
    results = Memory([Output(HISTOGRAMS.name, key, b"{}"), *good])
    assert [histogram.period for histogram in results.histograms("s")] == [0]
    (error,) = results.unreadable.values()
    assert "topic histograms: a record has the key" in error.message and repr(key) in error.message


def test_a_number_that_is_null_costs_one_period_and_its_field_is_named() -> None:
    made = published_results(3)
    for place, output in enumerate(made):
        if output.topic == HISTOGRAMS.name and output.key == b"s/1":
            tree = decode(output.value)
            tree["attributes"][0]["n"] = "many"
            made[place] = replace(output, value=compress(to_json(tree)))
    results = Memory(made)
    assert [histogram.period for histogram in results.histograms("s")] == [0, 2]
    assert [report.windows[0].first for report in results.mobility("s")] == [0, 1, 2], "another kind is not touched"
    (error,) = results.unreadable.values()
    assert "attributes.0.n: Input should be a valid integer" in error.message and "many" not in error.message


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


VALUES, HORIZON, SMALL = 300, 3, 1500
SCHEME = scheme_with(
    of_size(VALUES, "a", mechanism="l-osue"),
    of_size(40, "b", mechanism="l-grr"),
    id="s",
    eps_inf=8,
    eps_1=4,
    horizon=HORIZON,
    clock="source",
    solution="spl",
)


def counts(seed: int, people: int = 2000) -> Counts:
    rng, gaps = np.random.default_rng(seed), np.arange(1, HORIZON + 1, dtype=np.uint16)
    n = np.full(HORIZON, people // HORIZON)
    supports = {q.name: rng.binomial(n[:, None], 0.3, (HORIZON, q.k)) for q in SCHEME.questions}
    widths = {q.name: np.arange(q.mechanism.encoding.widths) for q in SCHEME.questions}
    return {name: Statistics(gaps, n, N, widths[name]) for name, N in supports.items()}


def published(periods: int, seed: int = 0) -> list[Output]:
    """Finals of some periods, and what is known of the next one, which is open."""

    def final(period: int) -> bytes:
        return Final.of(SCHEME, period, counts(period + seed), NotCounted()).encode()

    finals = [message(FINALS, "s", period, final(period)) for period in range(periods)]
    status = Status(survey="s", closed_through=periods - 1, open={periods: 2000})
    return [*finals, message(OPEN, "s", periods, final(periods)), status.message]


def published_results(periods: int) -> list[Output]:
    """What is made of the finals of some periods."""
    return Memory(published(periods), SCHEME.survey).made


def made(periods: int, limit: int, seed: int = 0) -> list[Output]:
    return Memory(published(periods, seed), SCHEME.survey, limit=limit).made


def shown(messages: Iterable[Output]) -> list[str]:
    """All that a reader finds."""
    results = read(messages)
    return [found.model_dump_json() for view in (HISTOGRAMS, MOBILITY, LIVE) for found in results.read(view, "s")]


def read(messages: Iterable[Output]) -> Results:
    store = Kept()
    store.kept += messages
    return Results(store)


def test_a_result_in_pieces_is_read_as_the_same_result() -> None:
    whole, cut = made(4, VALUE_BYTES), made(4, SMALL)
    assert not any(map(is_piece, whole))
    assert sum(map(is_piece, cut)) > 4 * 3, "finals of both kinds, and the provisional result"
    assert all(len(item.value) <= SMALL for item in cut if is_piece(item))
    assert shown(cut) == shown(whole) and len(shown(whole)) == 9


def test_pieces_come_before_results_and_the_histogram_of_a_period_after_everything_else() -> None:
    """What is published of a period is complete once its histogram is there."""
    cut = made(2, SMALL)
    kinds = ["piece" if is_piece(item) else item.topic for item in cut]
    ends = {kind: len(kinds) - 1 - kinds[::-1].index(kind) for kind in kinds}
    assert ends["piece"] < kinds.index("mobility") and ends["mobility"] < kinds.index("histograms")


def test_repeated_pieces_are_read_once_and_a_result_that_lacks_one_is_not_there() -> None:
    cut = made(1, SMALL)
    pieces = [item for item in cut if is_piece(item) and item.topic == HISTOGRAMS.name]
    assert shown([*cut, *cut[:7], *reversed(cut)]) == shown(cut)
    assert read(item for item in cut if item != pieces[1]).histograms("s") == []
    assert read(pieces).histograms("s") == [], "pieces alone are nothing yet"
    changed = Output(pieces[0].topic, pieces[0].key, b"other bytes")
    with pytest.raises(ResultsError, match="published twice with different values"):
        read([*cut, changed]).histograms("s")


def test_a_provisional_result_whose_pieces_are_half_replaced_is_not_read() -> None:
    before, after = (made(0, SMALL, seed) for seed in (1, 2))
    assert read([*before, *after]).live("s") is not None
    assert read([*before, after[0]]).live("s") is None


def test_wherever_publishing_ends_a_result_is_whole_or_not_there() -> None:
    """A worker may be killed after some pieces, and before what lists them."""
    cut = made(2, SMALL)
    seen = [{*shown(cut[:end])} for end in range(len(cut) + 1)]
    assert all(some <= seen[-1] for some in seen) and not seen[0] and len(seen[-1]) == 5
