"""What goes wrong with one survey, or a record that a broker refuses, quarantines it; once it goes on, it is exact."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from protocols.errors import StateError
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.wire import MAX_ROWS, Frame
from stream_app.counting.counters import PeriodCounts
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.finals import Final
from stream_app.log.flushes import Flush, state_key
from stream_app.log.log_reader import LogReader
from stream_app.log.marks import Loss
from stream_app.log.recovery import NONE_FAIL, Errors, Records, resumption, survey_of
from stream_app.merging.merger import Merger
from stream_app.merging.survey import MergedSurvey
from tests.stream_app.crashes import Step, Worker, World, counting, keep, merging
from tests.stream_app.test_exactness import SAVINGS
from tests.stream_app.worlds import KEY, SCHEME, Event, Recount, Reports, Row, Tick, counts_of, wire

SCHEMES = {name: Scheme(SCHEME.survey.model_copy(update={"id": name})) for name in ("good", "bad")}
Store = dict[bytes, bytes]
Log = list[tuple[str, Event]]  # the survey of each event
BOTH: Log = [
    ("bad", Reports(0, (Row(1), Row(2)))),
    ("good", Reports(0, (Row(1),))),
    ("bad", Reports(0, (Row(3), Row(2)))),
    ("bad", Tick(0)),
    ("good", Reports(0, (Row(4),))),
    ("bad", Reports(1, (Row(1),))),
]
TOO_LARGE = StateError("the broker refuses a record as too large", "")


class Bug:
    """An error that the survey `bad` raises while it is on, where it is counted or where its finals are made."""

    on, place = True, "count"

    def check(self, survey: str, place: str) -> None:
        if self.on and survey == "bad" and place == self.place:
            raise ZeroDivisionError("planted")


@pytest.fixture
def bug(monkeypatch: pytest.MonkeyPatch) -> Bug:
    bug, count, freeze = Bug(), PeriodCounts.count, MergedSurvey.freeze

    def count_or_fail(self: PeriodCounts, frame: Frame) -> None:
        count(self, frame)  # what is in memory is changed by then
        bug.check(frame.survey, "count")

    def freeze_or_fail(self: MergedSurvey, *about: Any) -> bytes:
        bug.check(self.survey, "merge")
        return freeze(self, *about)

    monkeypatch.setattr(PeriodCounts, "count", count_or_fail)
    monkeypatch.setattr(MergedSurvey, "freeze", freeze_or_fail)
    return bug


def records(log: Log) -> list[Record]:
    return [Record(offset, *wire(event, SCHEMES[survey])) for offset, (survey, event) in enumerate(log)]


def start(store: Store, log_start: int = 0, failing: Errors = NONE_FAIL) -> PartitionCounter:
    return PartitionCounter(0, 1, SCHEMES.get, KEY, store.items(), log_start, surveys=SCHEMES, failing=failing)


def read(
    store: Store, log: Log, end: int | None = None, log_start: int = 0, failing: Errors = NONE_FAIL
) -> PartitionCounter:
    """Recover, read on in one call, and flush; once more if a survey fails."""
    counter = start(store, log_start, failing)
    try:
        counter.apply_all(records(log)[counter.next_offset : end])
        keep(store, counter.flush())
    except Exception:
        if not counter.failing or failing:
            raise
        return read(store, log, end, log_start, counter.failing)
    return counter


def resume(store: Store, times: int = 1) -> None:
    store[state_key("count", 0, "resumed", "bad")] = resumption(times)


def counted(counter: PartitionCounter) -> dict[tuple[str, int], int]:
    return {key: period.counts.snapshot()["colour"].total for key, period in counter.open_periods.items()}


def test_an_error_while_a_survey_is_counted_quarantines_it_and_the_others_are_counted(bug: Bug) -> None:
    store: Store = {}
    counter = read(store, BOTH)
    assert counted(counter) == {("good", 0): 2}
    assert counter.quarantines["bad"].offset == -1 and counter.quarantines["bad"].why == "ZeroDivisionError: planted"
    assert list(counter.failed) == ["bad"]
    assert counter.passed_over == {"bad": 4}
    again = start(store)
    assert (again.next_offset, list(again.quarantines), again.failed) == (6, ["bad"], {}), (
        "a restart does not try again"
    )


def test_a_survey_that_fails_again_is_quarantined_again_until_it_is_resumed_again(bug: Bug) -> None:
    store: Store = {}
    read(store, BOTH)
    resume(store)
    assert read(store, BOTH).quarantines["bad"].times == 2
    bug.on = False
    assert list(start(store).quarantines) == ["bad"]
    resume(store, 2)
    assert counted(read(store, BOTH)) == {("good", 0): 2, ("bad", 1): 1}


def test_a_survey_whose_state_cannot_be_read_is_quarantined_and_counted_again_once_it_goes_on() -> None:
    store: Store = {}
    read(store, BOTH, 2)
    store[state_key("count", 0, "counter", "bad", 0)] = b"h3\xff"
    counter = read(store, BOTH)
    assert "cannot be read" in counter.quarantines["bad"].why
    assert counted(counter) == {("good", 0): 2}
    resume(store)
    counter = read(store, BOTH)
    assert counted(counter) == {("good", 0): 2, ("bad", 1): 1}
    assert counter.rejects["bad"] == Counter({"repeat": 1})


def test_a_survey_that_is_not_published_any_more_is_quarantined() -> None:
    store: Store = {}
    read(store, BOTH, 2)
    counter = PartitionCounter(0, 1, {"good": SCHEMES["good"]}.get, KEY, store.items())
    assert "which is not published" in counter.quarantines["bad"].why
    keep(store, counter.flush())
    assert counter.lost == {}
    resume(store)
    assert counted(read(store, BOTH)) == {("good", 0): 2, ("bad", 1): 1}


def test_a_survey_whose_counter_is_too_large_is_quarantined() -> None:
    size = len(SCHEMES["good"].fingerprint) + 600
    log = records([("good", Reports(0, (Row(1),))), ("bad", Reports(0, tuple(map(Row, range(1, 99)))))])
    counter = PartitionCounter(0, 1, SCHEMES.get, KEY, limit=size)
    counter.apply_all(log)
    with pytest.raises(StateError, match="a record at most"):
        counter.flush()
    counter = PartitionCounter(0, 1, SCHEMES.get, KEY, limit=size, failing=counter.failing)
    counter.apply_all(log)
    keys = [item.key for item in counter.flush()]
    assert state_key("count", 0, "counter", "good", 0) in keys and not [key for key in keys if b"bad" in key]


def test_what_expired_while_a_survey_was_quarantined_is_its_shortfall_and_no_other_surveys(bug: Bug) -> None:
    store: Store = {}
    read(store, BOTH)
    bug.on = False
    resume(store)
    counter = read(store, BOTH, log_start=3)
    assert counter.lost == {"bad": (Loss(0, 2, 3 * MAX_ROWS),)}
    assert counted(counter) == {("good", 0): 2, ("bad", 1): 1}
    again = start(store, log_start=3)
    assert (again.missing, again.next_offset) == ("", 6), "it is said once"


def test_too_little_memory_is_no_fault_of_a_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: PeriodCounts, frame: Frame) -> None:
        raise MemoryError

    monkeypatch.setattr(PeriodCounts, "count", full)
    with pytest.raises(MemoryError):
        read({}, BOTH)


def a_log(chance: random.Random) -> Log:
    log: Log = []
    for _ in range(chance.randint(15, 40)):
        event: Event = Tick(chance.randint(0, 4))
        if chance.random() < 0.8:
            rows = [Row(chance.randint(1, 9), chance.randint(0, 4), chance.randint(0, 3)) for _ in range(3)]
            event = Reports(chance.randint(0, 4), tuple(rows))
        log.append((chance.choice(["good", "bad"]), event))
    return log


def a_script(chance: random.Random) -> list[Step]:
    actions = ["read", "read", "again", "flush", "crash", "pause", "resume", "revert"]
    return [(chance.choice(actions), chance.randint(0, 12)) for _ in range(chance.randint(5, 25))]  # type: ignore[misc]


class Refusing(Worker):
    """A worker whose records of the survey `bad`, and positions, are refused now and then while the bug is on."""

    def __init__(self, worker: Worker, chance: random.Random, end: int, bug: Bug) -> None:
        super().__init__(worker.reader, worker.read)
        self._chance, self._end, self._bug = chance, end, bug

    def flush(self) -> Flush:
        """What of a flush is written."""
        flush = self._without_a_record()
        if not self._bug.on or self.reader.failing or self._chance.random() < 0.6:
            return flush
        self.read(range(self.next_offset, min(self.next_offset + self._chance.randint(0, 3), self._end)))
        self.reader.position_refused(flush)
        stages = [[item for item in stage if not item.key.endswith(b"/position")] for stage in flush.stages[:-1]]
        return Flush(flush.offset, tuple(map(tuple, stages)))

    def _without_a_record(self) -> Flush:
        flush = super().flush()
        places = [
            (number, item)
            for number, stage in enumerate(flush.stages)
            for item in stage
            if survey_of(item) == "bad" and item.value is not None
        ]
        if not (self._bug.on and places) or self._chance.random() < 0.3:
            return flush
        number, refused = self._chance.choice(places)
        self.reader.failing["bad"] = TOO_LARGE
        written = tuple(item for item in flush.stages[number] if item is not refused)
        return Flush(flush.offset, (*flush.stages[:number], written))


@pytest.mark.parametrize("place", ["count", "merge", "broker"])
@pytest.mark.parametrize("seed", range(15))
def test_whatever_happens_to_its_workers_a_survey_that_was_quarantined_is_exact_in_the_end(
    seed: int, place: str, bug: Bug
) -> None:
    """Crashes between any two writes, late writes; in the first half one survey fails, or records of it are refused."""
    chance = random.Random(f"{place} {seed}")
    log, saving = a_log(chance), chance.choice(SAVINGS)
    read_from, bug.place = records(log), place

    def run(state: str, end: int, start: Callable[[Records, Errors], Worker]) -> tuple[World, LogReader]:
        def recovered(found: Records, failing: Errors) -> Worker:
            worker = start(found, failing)
            return Refusing(worker, chance, end, bug) if place == "broker" else worker

        bug.on, world = True, World(recovered, end)
        world.run(a_script(chance))
        assert place != "merge" or not [one for one in world.topics["finals"] if one.key.startswith(b"bad/")]
        bug.on = False
        world.store[state_key(state, 0, "resumed", "bad")] = resumption(99)
        return world, world.run(a_script(chance)).reader

    def count(found: Records, failing: Errors) -> Worker:
        options: Any = {"surveys": SCHEMES, "saving": saving, "failing": failing}
        return counting(read_from, PartitionCounter(0, 1, SCHEMES.get, KEY, found, **options))

    def merge(found: Records, failing: Errors) -> Worker:
        return merging(partials, Merger(0, 1, SCHEMES.get, keyring, found, failing=failing))

    world, counter = run("count", len(log), count)
    assert isinstance(counter, PartitionCounter)
    partials = world.topics["partials"]
    keyring = Keyring(bytes(16))
    merged, _ = run("merge", len(partials), merge)
    finals = merged.topics["finals"]
    first = {message.key: message.value for message in reversed(finals)}
    assert all(first[message.key] == message.value for message in finals)
    for name in SCHEMES:
        own = {offset: event for offset, (survey, event) in enumerate(log) if survey == name}
        recount, decoded = Recount.of_logs([own]), [Final.decode(message.value) for message in finals]
        assert counter.rejects.get(name, Counter()) == recount.rejects, name
        assert {one.key.decode() for one in world.topics["deadletters"] if survey_of(one) == name} == recount.letters[0]
        assert {final.period: counts_of(final) for final in decoded if final.survey == name} == recount.finals, name


def test_a_partial_or_a_status_that_cannot_be_read_quarantines_its_survey_in_the_merge() -> None:
    store: Store = {}
    merger = Merger(0, 1, SCHEMES.get, Keyring(bytes(16)))
    with pytest.raises(StateError, match="cannot be read"):
        merger.apply(0, b"?", key=b"bad")
    merger = Merger(0, 1, SCHEMES.get, Keyring(bytes(16)), failing=merger.failing)
    assert merger.apply(0, b"?", key=b"bad") == [] and list(merger.quarantines) == ["bad"]
    with pytest.raises(StateError, match="cannot be read"):
        merger.apply(1, b"?")
    keep(store, merger.flush())
    poisoned = store | {state_key("merge", 0, "survey", "good"): b"?"}
    merger = Merger(0, 1, SCHEMES.get, Keyring(bytes(16)), poisoned.items())
    assert sorted(merger.quarantines) == ["bad", "good"]
