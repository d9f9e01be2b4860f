"""Which surveys a worker knows, and what it does with records of one that it does not know yet."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from faust.types import TP

from protocols.scheme import Scheme
from protocols.wire import CONTENT_TYPE_HEADER
from servers.settings import KafkaSettings
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.faust_app.agents import Counting, WorkerOptions
from stream_app.faust_app.broker import Surveys
from stream_app.faust_app.monitoring import Outcomes
from stream_app.faust_app.overrides.batches import EpochRecord
from stream_app.kafka import Topics
from tests.helpers.another_release import never_choose
from tests.helpers.publishing import record_of
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import KEY, SCHEME, Event, Reports, Row, scheme, wire

REPORTS = TP("reports", 0)
GOOD = Reports(0, (Row(1), Row(5)))


class Registry(Surveys):
    """A survey registry in memory: what is published is known after the next catch-up."""

    def __init__(self) -> None:
        super().__init__(KafkaSettings(bootstrap="127.0.0.1:1"), "surveys", cast(Any, None))
        self.published: list[Any] = []
        self.times_caught_up = 0

    async def catch_up(self) -> None:
        self.times_caught_up += 1
        for each in self.published:
            self.schemes[each.survey.id] = each


class Partition:
    """A partition of the reports topic, whose counter knows the surveys of a registry."""

    def __init__(self) -> None:
        self.registry = Registry()
        options = WorkerOptions(KafkaSettings(), Topics("small", 1, 1), KEY, KEY)
        other = cast(Any, None)
        self._agent = Counting(other, "reports", other, other, cast(Any, self), options, self.registry)
        self.counter: PartitionCounter = self._agent.make(0, {}, 0, {})
        self.outcomes: Outcomes = Counter()

    async def has_partitions(self, topic: str, wanted: int) -> bool:
        """As the watch over the log: no partitions were added."""
        return True

    def receive(self, records: Sequence[EpochRecord]) -> bool:
        """Let the agent apply records that were fetched together."""
        task = SimpleNamespace(tp=REPORTS, reader=self.counter, outcomes=self.outcomes, next_offset=0, is_private=False)
        flush = asyncio.run(self._agent.apply(cast(Any, task), records))
        self.is_private = task.is_private
        return flush

    @property
    def counted(self) -> int:
        return sum(period.counts.snapshot()["colour"].total for period in self.counter.open_periods.values())


def records(*events: Event, first: int = 0, of: Scheme = SCHEME) -> list[EpochRecord]:
    def record(offset: int, kind: str, value: bytes) -> EpochRecord:
        headers = ((CONTENT_TYPE_HEADER, kind.encode()),)
        return EpochRecord("reports", 0, offset, 0, 0, None, value, None, 0, len(value), headers)

    return [record(offset, *wire(event, of)) for offset, event in enumerate(events, first)]


def test_a_survey_that_was_published_before_its_reports_is_read_before_they_are_judged() -> None:
    partition = Partition()
    partition.registry.published.append(SCHEME)
    partition.receive(records(GOOD, Reports(0, (Row(7),))))
    assert partition.counted == 3
    assert partition.counter.rejects == {"s": {}}
    assert partition.registry.times_caught_up == 1


def test_records_of_a_survey_that_nobody_published_are_refused_after_reading_the_registry_once() -> None:
    """Once for all that were fetched together: a sender of such records cannot keep a worker busy with the registry."""
    partition = Partition()
    partition.receive(records(*[GOOD] * 100))
    assert partition.counter.rejects == {"": {"unknown-survey": 200}}
    assert partition.registry.times_caught_up == 1
    partition.receive(records(GOOD, first=100))
    assert partition.registry.times_caught_up == 2, "this record may be newer than what was read"


def test_a_reading_of_the_registry_that_fails_makes_nothing_certain() -> None:
    partition = Partition()

    async def fail() -> None:
        raise OSError

    partition.registry.catch_up = fail  # type: ignore[method-assign]
    with pytest.raises(OSError):
        partition.receive(records(GOOD))
    assert (partition.counter.next_offset, partition.counter.rejects) == (0, {})


def worker_that_read(*published: Scheme, header: str = "fingerprint") -> Surveys:
    """A worker's surveys after it has read these records."""
    surveys = Surveys(KafkaSettings(bootstrap="127.0.0.1:1"), "surveys", cast(Any, None))
    for offset, each in enumerate(published):
        surveys.register(record_of(each.survey, each.fingerprint, offset, header))
    return surveys


def test_texts_of_a_survey_follow_its_last_record_and_terms_stay_those_of_the_first() -> None:
    titled = scheme("title: Another title,")
    assert worker_that_read(SCHEME, titled).schemes["s"].survey.title == "Another title"
    assert worker_that_read(SCHEME, scheme("minimum: 5,")).schemes["s"].fingerprint == SCHEME.fingerprint


def test_a_worker_does_not_count_a_survey_that_it_resolves_to_other_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failure would look like: a worker of another release that estimates from other noise than devices have."""
    published = scheme_with(of_size(3), id="s", eps_inf=2, eps_1=1)
    assert worker_that_read(published).schemes["s"].fingerprint == published.fingerprint
    never_choose(monkeypatch, published.questions[0].label)
    assert "s" not in worker_that_read(published).schemes


def test_a_record_without_a_fingerprint_is_skipped() -> None:
    assert "s" not in worker_that_read(SCHEME, header="another").schemes
