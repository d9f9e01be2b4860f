"""Recovering the merge from records of different age, when the log of partials no longer has everything."""

from collections.abc import Iterable

from protocols.randomness import Keyring
from protocols.scheme import Scheme
from stream_app.counting.partials import Part, encode_partial
from stream_app.log.flushes import state_key
from stream_app.merging.merger import Merger
from tests.stream_app.crashes import keep
from tests.stream_app.test_merging import Owner, counts, part, progress, status
from tests.stream_app.worlds import SCHEME

Store = dict[bytes, bytes]
POSITION = state_key("merge", 0, "position")
TWO = {name: Scheme(SCHEME.survey.model_copy(update={"id": name})) for name in ("a", "b")}


def test_a_part_of_a_closed_period_that_was_written_late_is_deleted_and_not_open_again() -> None:
    """A worker that was paused may write a part after another one has closed its period and deleted its parts."""
    store: Store = {}
    owner = Owner(partitions=1)
    keep(store, owner.take(part(0, 0, 5, 10)))
    late = {key: value for key, value in store.items() if b"/part/" in key}
    keep(store, owner.take(part(0, 0, 6, 11, closed=True), progress(0, 6, 0)))
    assert len(late) == 1 and not late.keys() & store.keys()
    store |= late
    restarted = Owner(partitions=1, records=store.items())
    flush = restarted.take(part(1, 0, 8, 3))
    assert status(flush).open == {1: 3}
    keep(store, flush)
    assert not late.keys() & store.keys()


def merger_of(store: Store, log_start: int = 0) -> Merger:
    return Merger(0, 1, TWO.get, Keyring(bytes(16)), store.items(), log_start)


def apply(merger: Merger, surveys: Iterable[str]) -> None:
    for survey in surveys:
        offset = merger.next_offset
        merger.apply(offset, encode_partial(Part(survey, 0, 0, offset, False, counts(offset + 1))))


def test_what_is_missing_of_one_survey_changes_nothing_about_another() -> None:
    """The log lacks partials of `a`. Those of `b` that its record lacks are read, also if it crashes before it has."""
    store, newer = Store(), Store()
    merger = merger_of(store)
    apply(merger, ["a", "b"])
    keep(store, merger.flush())
    apply(merger, ["a", "b", "b"])
    keep(newer, merger.flush())
    store[POSITION] = newer[POSITION]  # the crash came before the records of both surveys were on disk

    for missing in ("offsets 1 to 2", "offsets 2 to 2"):
        merger = merger_of(store, log_start=3)
        assert missing in merger.missing
        assert merger.next_offset == 3
        keep(store, merger.flush())
