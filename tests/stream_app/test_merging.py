"""The merge, rule by rule."""

from collections.abc import Iterable

import numpy as np
import pytest

from protocols.errors import LogError
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.wire import Lookup
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from stream_app.counting.partials import Part, Progress, encode_partial
from stream_app.finals import Final, Status
from stream_app.log.flushes import FINALS, OPEN, Flush, Output, Write, state_key
from stream_app.log.marks import Acceptance, LogView, Loss, Mark, Skipped, Why, compare
from stream_app.merging.merger import OPEN_AT_ONCE, Merger
from stream_app.merging.survey import Frozen
from tests.stream_app.crashes import keep, outputs
from tests.stream_app.worlds import SURVEYS, scheme


def test_a_lower_or_equal_offset_never_replaces() -> None:
    owner = Owner(partitions=1)
    flush = owner.take(part(0, 0, 5, 10), part(0, 0, 5, 99), part(0, 0, 4, 98))
    assert status(flush).open == {0: 10}
    assert status(owner.take(part(0, 0, 6, 11))).open == {0: 11}


def test_the_first_closed_part_is_never_replaced() -> None:
    owner = Owner(partitions=1)
    flush = owner.take(
        part(0, 0, 5, 10, closed=True), part(0, 0, 9, 99, closed=True), part(0, 0, 12, 98), progress(0, 5, 0)
    )
    assert finals(flush) == {0: 10}


def test_a_flush_has_the_last_offset_read_and_the_next_one_writes_only_changes() -> None:
    owner = Owner(partitions=1)
    assert owner.take(part(0, 0, 5, 10), part(0, 0, 6, 11, closed=True), progress(0, 6, 0)).offset == 2
    assert not owner.merger.flush()


def test_more_finals_than_a_horizon_are_all_frozen_before_they_are_published() -> None:
    owner = Owner(partitions=1)
    flush = owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 6))
    frozen = [item.key for item in flush.stages[1] if not isinstance(item, Output)]
    assert frozen == [state_key("merge", 0, "final", "s", period) for period in range(7)]


def test_rejects_are_in_the_status_and_not_in_finals() -> None:
    flush = Owner(partitions=2).take(
        progress(0, 4, -1, late=3), progress(1, 4, -1, late=1, repeat=2), part(0, 0, 4, 5), progress(0, 3, -1, late=99)
    )
    assert status(flush).rejects == {"late": 4, "repeat": 2}
    assert results(flush) == {}


def test_under_a_minimum_open_periods_have_rounded_numbers_and_no_counts() -> None:
    owner = Owner(partitions=1, lookup={"s": scheme("minimum: 50,")}.get)
    flush = owner.take(
        part(0, 0, 4, 119),
        part(1, 0, 4, 7),
        Progress("s", 0, 4, -1, {"late": 3, "repeat": 60}, {0: 99}, (Loss(0, 0, 70),)),
    )
    published = status(flush)
    assert (published.open, published.rejects) == ({0: 100}, {"repeat": 50}), "a 0 would show that there is a report"
    assert (published.lates, published.lost) == ({0: 50}, ((0, 0, 100),)), "a loss is rounded up"
    assert [output.key for output in outputs(flush, OPEN)] == [b"s"]


NOISED = {"s": scheme("presence_epsilon: 1,")}


def test_with_noise_on_presence_a_status_says_what_is_closed_and_nothing_else() -> None:
    owner = Owner(partitions=1, lookup=NOISED.get)
    owner.take(
        part(0, 0, 5, 10, closed=True),
        part(1, 0, 5, 3),
        Progress("s", 0, 5, 0, {"repeat": 7}, {0: 4}, (Loss(0, 0, 2),)),
    )
    assert owner.merger.open("s") == (Status(survey="s", closed_through=0), [])


def test_with_noise_on_presence_nothing_is_published_when_somebody_reports() -> None:
    """Neither a report nor a refused row makes a live result: that it came would show that somebody was there."""
    owner, store = Owner(partitions=1, lookup=NOISED.get), dict[bytes, bytes]()
    for partial in (part(0, 0, 5, 10), progress(0, 6, -1, repeat=1), part(0, 0, 7, 11)):
        flush = owner.take(partial)
        assert not [item for item in flush if isinstance(item, Output)]
        keep(store, flush)
    owner = Owner(partitions=1, lookup=NOISED.get, records=store.items())
    assert not [item for item in owner.take() if isinstance(item, Output)], "nor does a restart"
    assert status(owner.take(progress(0, 8, 0))).closed_through == 0


def test_with_noise_on_presence_the_first_final_does_not_depend_on_who_reported() -> None:
    def published(*partials: Part | Progress) -> list[bytes]:
        flush = Owner(partitions=1, lookup=NOISED.get).take(*partials)
        return [item.key for item in flush if isinstance(item, Output)]

    somebody = published(part(0, 0, 3, 1, closed=True), part(1, 0, 3, 9, closed=True), progress(0, 3, 1))
    assert somebody == published(part(1, 0, 3, 9, closed=True), progress(0, 3, 1))
    assert somebody == published(progress(0, 3, 1)) == [b"s/0", b"s/1", b"s"]
    ahead = NOISED["s"].survey.ahead
    expected = [f"s/{t}".encode() for t in range(ahead)]
    assert published(progress(0, 3, 100)) == [*expected, b"s"], "later ones cannot have a report"


def test_the_release_of_a_period_is_kept_instead_of_its_counts() -> None:
    owner = Owner(partitions=1, lookup=NOISED.get)
    flush = owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0))
    (record,) = [item for item in flush.stages[1] if not isinstance(item, Output)]
    assert record.value is not None
    frozen = Frozen.decode(record.value)
    assert results(flush) == {b"s/0": frozen.value}
    assert Final.decode(frozen.value).windows
    store: dict[bytes, bytes] = {}
    keep(store, flush)
    after = part(1, 0, 6, 9, closed=True), progress(0, 6, 1)
    restarted = Owner(partitions=1, lookup=NOISED.get, records=store.items())
    assert results(restarted.take(*after)) == results(owner.take(*after)), "also after a restart"


def test_a_marker_among_the_partials_is_skipped_and_a_gap_is_an_error() -> None:
    owner = Owner(partitions=1)
    owner.merger.skip(Skipped(0, 0, Why.MARKER))
    assert finals(owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0))) == {0: 10}
    for why in (Why.ABSENT, Why.TOO_LARGE, Why.UNDECODABLE):
        with pytest.raises(LogError, match="records are missing"):
            owner.merger.skip(Skipped(3, 4, why))


def test_of_many_statuses_a_flush_has_some_and_each_has_its_turn() -> None:
    names = [f"s{number}" for number in range(2 * OPEN_AT_ONCE + 1)]
    surveys = {name: Scheme(SURVEYS["s"].survey.model_copy(update={"id": name})) for name in names}
    owner = Owner(partitions=1, lookup=surveys.get)

    def shown(*surveys: str, period: int = 0, everything: bool = False) -> list[str]:
        for name in surveys:
            offset = owner.merger.next_offset
            owner.merger.apply(offset, encode_partial(Part(name, period, 0, offset, False, counts(1 + offset))))
        flush = owner.merger.flush(True, everything)
        return [output.key.decode() for output in outputs(flush, OPEN) if b"/" not in output.key]

    assert shown(*names) == sorted(names[:OPEN_AT_ONCE])
    assert shown() == sorted(names[OPEN_AT_ONCE : 2 * OPEN_AT_ONCE])
    assert shown(*names[:OPEN_AT_ONCE]) == sorted([names[-1], *names[: OPEN_AT_ONCE - 1]]), (
        "the last one waited longest"
    )
    new = shown(*names[:-1], names[-1], period=1)
    assert len(new) == OPEN_AT_ONCE
    assert len(shown(everything=True)) == len(names) - OPEN_AT_ONCE
    assert shown() == []


def test_a_status_that_was_not_published_before_a_crash_is_published_after_it() -> None:
    before, store = Owner(partitions=1), dict[bytes, bytes]()
    before.merger.apply(0, encode_partial(part(0, 0, 5, 10)))
    before.merger.apply(1, encode_partial(progress(0, 6, -1, repeat=3)))
    keep(store, before.merger.flush(live=False))
    published = status(Owner(partitions=1, records=store.items()).take())
    assert (published.open, published.rejects) == ({0: 10}, {"repeat": 3})


def test_a_final_that_was_frozen_and_not_published_is_published_with_the_same_bytes_and_headers() -> None:
    log, store = (part(0, 0, 5, 10, closed=True), progress(0, 5, 0)), dict[bytes, bytes]()
    _, frozen, _, outputs, *_ = Owner(1).take(*log).stages
    keep(store, frozen)
    assert len(store) == 1, "the crash comes after freezing, before publishing"
    assert Owner(1, records=store.items()).take(*log).stages[3] == outputs
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


KEYRING = Keyring(bytes(16))


def counts(n: int, gap: int = 1) -> Counts:
    """n reports, all of them for the first colour and no page."""
    gaps, total = np.array([gap], dtype=np.uint16), np.array([n])
    return {
        "colour": Statistics(gaps, total, np.array([[n, 0, 0]])),
        "page": Statistics(gaps, total, np.zeros((1, 10), dtype=np.int64), np.eye(11, dtype=np.int64)[0] * n),
    }


def part(period: int, partition: int, offset: int, n: int, closed: bool = False) -> Part:
    return Part("s", period, partition, offset, closed, counts(n))


def progress(partition: int, offset: int, through: int, **rejects: int) -> Progress:
    return Progress("s", partition, offset, through, rejects, {})


class Owner:
    """A merger that applies partials one after another."""

    def __init__(self, partitions: int = 2, lookup: Lookup = SURVEYS.get, **options: object) -> None:
        self.merger = Merger(0, partitions, lookup, KEYRING, **options)  # type: ignore[arg-type]

    def take(self, *partials: Part | Progress) -> Flush:
        for partial in partials:
            self.merger.apply(self.merger.next_offset, encode_partial(partial))
        return self.merger.flush()


def finals(flush: Iterable[Write | Output]) -> dict[int, int]:
    """Period to n of the finals that were published."""
    found = [Final.decode(output.value) for output in outputs(flush, FINALS)]
    return {final.period: final.counts["colour"].total for final in found}


def status(flush: Iterable[Write | Output]) -> Status:
    """What was published about the survey beside its finals."""
    return next(Status.model_validate_json(one.value) for one in outputs(flush, OPEN) if b"/" not in one.key)


def results(flush: Iterable[Write | Output]) -> dict[bytes, bytes]:
    """The finals that were published."""
    return {output.key: output.value for output in outputs(flush, FINALS)}
