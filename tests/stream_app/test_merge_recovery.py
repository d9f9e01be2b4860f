"""The merge after crashes, restarts and late writes: what is published is what was, or would have been."""

from collections.abc import Iterable

import pytest

from stream_app.counting.partials import Part, Progress, encode_partial
from stream_app.log.flushes import Flush, Output, state_key
from stream_app.log.marks import Acceptance, LogView, Mark, compare
from stream_app.merging.merger import Merger
from tests.stream_app.crashes import keep
from tests.stream_app.merges import KEYRING, Owner, counts, finals, part, progress, results, status
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


@pytest.mark.parametrize(
    "key", [state_key("merge", 0, "position"), state_key("merge", 0, "survey", "s")], ids=["position", "survey"]
)
def test_an_old_record_republishes_no_final_that_was_deleted(key: bytes) -> None:
    """A paused owner writes an old record after several periods, when finals of earlier periods were deleted."""
    store: dict[bytes, bytes] = {}
    log: list[bytes] = []
    published: dict[bytes, bytes] = {}
    versions = []
    merger = Merger(0, 1, SURVEYS.get, KEYRING)
    for period in range(6):
        for partial in (part(period, 0, period, period + 1, closed=True), progress(0, period, period)):
            log.append(encode_partial(partial))
            merger.apply(len(log) - 1, log[-1])
        flush = merger.flush()
        keep(store, flush)
        published |= results(flush)
        versions.append(store[key])
    for version in versions:
        merger = Merger(0, 1, SURVEYS.get, KEYRING, (store | {key: version}).items())
        for offset in range(merger.next_offset, len(log)):
            merger.apply(offset, log[offset])
        assert results(merger.flush()).items() <= published.items()
        assert merger.status("s").through == 5


def test_an_old_record_of_a_survey_is_read_up_again_however_often_that_is_interrupted() -> None:
    """Another survey is further by then: nothing of it is read twice, and nothing of the first is passed over."""
    schemes = {"s": SURVEYS["s"], "t": SURVEYS["s"]}
    log = [encode_partial(Part(s, 0, p, 5, True, counts(7))) for s in "st" for p in range(3)]
    log += [encode_partial(Progress(s, p, 5, 0, {}, {})) for p in range(3) for s in "ts"]
    store: dict[bytes, bytes] = {}
    versions: list[bytes | None] = [None]
    merger = Merger(0, 3, schemes.get, KEYRING)
    for offset, value in enumerate(log[:-1]):
        merger.apply(offset, value)
        keep(store, merger.flush())
        versions.append(store.get(state_key("merge", 0, "survey", "s")))
    assert merger.status("t").through == 0 and merger.status("s").through == -1
    for version in versions:
        late = {key: value for key, value in store.items() if key != state_key("merge", 0, "survey", "s")}
        late |= {} if version is None else {state_key("merge", 0, "survey", "s"): version}
        while (merger := Merger(0, 3, schemes.get, KEYRING, late.items())).next_offset < len(log) - 1:
            merger.apply(merger.next_offset, log[merger.next_offset])
            before, again = merger.next_offset, merger.flush()
            assert not results(again)
            keep(late, again)
            if Merger(0, 3, schemes.get, KEYRING, late.items()).next_offset < before:
                break  # nothing was to be saved: read on without an interruption
        for offset in range(merger.next_offset, len(log)):
            merger.apply(offset, log[offset])
        assert finals(merger.flush()) == {0: 21}


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
