"""The merge after crashes, restarts and late writes: what is published is what was, or would have been."""

from collections.abc import Iterable

from stream_app.counting.partials import encode_partial
from stream_app.log.flushes import Flush, Output, state_key
from stream_app.log.marks import Acceptance, LogView, Mark, compare
from stream_app.merging.merger import Merger
from tests.stream_app.crashes import keep
from tests.stream_app.merges import KEYRING, Owner, finals, part, progress, status
from tests.stream_app.worlds import SURVEYS


def test_a_status_that_was_not_published_before_a_crash_is_published_after_it() -> None:
    before, store = Owner(partitions=1), dict[bytes, bytes]()
    before.merger.apply(0, encode_partial(part(0, 0, 5, 10)))
    before.merger.apply(1, encode_partial(progress(0, 6, -1, repeat=3)))
    keep(store, before.merger.flush(live=False))
    published = status(Owner(partitions=1, records=store.items()).take())
    assert (published.open, published.rejects) == ({0: 10}, {"repeat": 3})


def test_a_final_that_was_frozen_and_not_published_is_published_with_the_same_bytes_and_headers() -> None:
    log = [encode_partial(p) for p in (part(0, 0, 5, 10, closed=True), progress(0, 5, 0))]

    def merged(records: Iterable[tuple[bytes, bytes]]) -> Flush:
        merger = Merger(0, 1, SURVEYS.get, KEYRING, records)
        for offset in range(merger.next_offset, len(log)):
            merger.apply(offset, log[offset])
        return merger.flush()

    flush, store = merged([]), dict[bytes, bytes]()
    _, frozen, _, outputs, *_ = flush.stages
    keep(store, frozen)
    assert len(store) == 1, "the crash comes after freezing, before publishing"
    assert merged(store.items()).stages[3] == outputs
    assert all(output.headers for output in outputs if isinstance(output, Output))


def test_finals_that_nothing_is_made_of_again_are_deleted() -> None:
    store: dict[bytes, bytes] = {}
    for period in range(5):
        owner = Owner(1, records=store.items())
        keep(store, owner.take(part(period, 0, period, period + 1, closed=True), progress(0, period, period)))
    assert sorted(key for key in store if b"/final/" in key) == [
        state_key("merge", 0, "final", "s", period) for period in (3, 4)
    ]


def test_partials_that_were_given_up_are_lost_in_the_periods_that_partitions_may_have_closed_in_them() -> None:
    """A closed part may be among them: its period becomes final without it."""
    store: dict[bytes, bytes] = {}
    owner = Owner()
    keep(store, owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0), progress(1, 2, -1)))
    mark, next_offset = owner.merger.mark, owner.merger.next_offset
    fault = compare(Mark("first", 0), next_offset, view := LogView("second", 0, 1))
    assert fault is not None
    store[state_key("merge", 0, "accepted")] = Acceptance.of(mark, next_offset, fault, view, lost=7).encode()
    owner = Owner(records=store.items())
    assert (owner.merger.next_offset, owner.merger.mark.topic) == (next_offset, "second")
    flush = owner.take(progress(1, 9, 1), progress(0, 9, 1), part(2, 0, 11, 4), progress(0, 12, 2), progress(1, 12, 2))
    assert finals(flush) == {0: 10, 1: 0, 2: 4}
    assert status(flush).lost == ((0, 1, 7),)
    keep(store, flush)
    assert status(Owner(records=store.items()).merger.flush()).lost == ((0, 1, 7),), "it is applied once"
