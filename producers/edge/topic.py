"""An edge over a topic of events, in any number of processes. Each owns some partitions, by Kafka's consumer group.

    records ─► events ─► spool, sealed ─► the period is closed for all ─► cut, published ─► choice ─► reports ─► sent

What partitions tell each other is on a topic of one compacted partition, `PREFIX.edge`, beside the events: how far each
has come, and through which period all send. The owner of partition 0 decides that, and closes periods when all have
sent them. The events topic keeps what open periods need: an owner may die at any moment, and the next one reads on.
"""

import json
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import structlog
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError
from pydantic import TypeAdapter

from memo_store.survey_memos import SurveyMemos
from producers.edge.directory import EdgeState, Progress
from producers.edge.partition import PartitionEdge, PartitionState, Read, Record, decode, next_closed, together
from producers.events.interpreting import Options
from producers.sinks import Sink, SourceClock
from producers.stopping import Stop, never
from protocols.errors import ReplayError, ServerUnavailable, Stopped
from protocols.survey import micros
from servers.kafka_clients import DURABLE, connected, failure, opened
from servers.private_files import discard, lock_directory, private_directory
from servers.settings import NO_KAFKA, KafkaSettings

OPEN_SECONDS = 30.0
WRITE_SECONDS = 60.0
POLL_RECORDS = 10_000
POLL_SECONDS = 0.5
POLL_INTERVAL_MS = 600_000
"""How long a process may take between two polls, to send a period, before its partitions are given to another."""
SESSION_MS = 10_000
"""How long a process may be silent, because it has died, before its partitions are given to another."""
TELL_SECONDS = 5.0
"""How often a position is published that changes nothing for others: a process that dies counts again from there."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class EventsTopic:
    """Where events are, and how they are written."""

    kafka: KafkaSettings
    topic: str
    read: Read
    encoding: str
    idle: timedelta

    @property
    def progress(self) -> str:
        return f"{self.kafka.prefix}.edge"


class TopicEdge(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """One process of a survey's edge. It lets go of all its partitions before others are given to it.

    Until these are known, kafka-python's `assignment` still shows the partitions that were let go. So what is given is
    kept here. Both methods of the listener are called within `poll` of the consumer, while this process waits for it.
    """

    def __init__(
        self, memos: SurveyMemos, sink: Sink, clock_key: bytes, options: Options, events: EventsTopic, workspace: Path
    ) -> None:
        survey = memos.respondent.scheme.survey
        self._memos, self._events, self._survey = memos, events, survey.id
        self._calendar = survey.calendar
        self._clock = SourceClock(survey, clock_key, sink)
        self._open, self._workspace = partial(PartitionEdge, memos, sink, options), workspace
        self._given: set[TopicPartition] = set()  # by the group, for now
        self._owned: dict[int, PartitionEdge] = {}  # of those, what was taken over
        self._came: dict[int, float] = {}  # by owned partition: when its last record came
        self._told: dict[int, tuple[float, PartitionState]] = {}  # by owned partition: what was told last, and when
        self._finished = -1  # the last period that this process has closed for all
        self._closed = -1  # the period through which all send, as the topic of progress says it
        self._others: dict[int, PartitionState] = {}  # how far each partition has come, as it says
        try:
            self._lock = lock_directory(private_directory(workspace))
        except BlockingIOError:
            raise ReplayError(
                f"another process is the edge of {workspace}",
                "give each process data of its own, with the same fleet.key",
            ) from None
        for left in workspace.glob("partition-*"):  # what a process that died has left open
            _remove(left, memos)
        _create(events)
        opening = partial(opened, settings=events.kafka, seconds=OPEN_SECONDS)
        self._producer = opening(KafkaProducer, **DURABLE)
        quiet: dict[str, Any] = {
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "allow_auto_create_topics": False,
        }
        self._progress = opening(KafkaConsumer, **quiet)
        self._consumer = opening(
            KafkaConsumer,
            group_id=f"{events.progress}.{survey.id}",
            isolation_level="read_committed",  # an event of an aborted transaction never was
            max_poll_records=POLL_RECORDS,
            max_poll_interval_ms=POLL_INTERVAL_MS,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=SESSION_MS // 3,
            **quiet,
        )
        self._log = TopicPartition(events.progress, 0)
        self._progress.assign([self._log])
        self._consumer.subscribe([events.topic], listener=self)
        self._count = len(self._consumer.partitions_for_topic(events.topic) or ())
        if not self._count:
            self.close()
            raise ReplayError(f"there is no topic {events.topic}", "create it, or name another under events.topic")

    def poll(self, seconds: float, stop: Stop = never) -> int:
        """Read what has come, and do what it allows. Returns how many records these were."""
        try:
            found = self._consumer.poll(timeout_ms=int(seconds * 1000))
            self._follow()
            came = {tp.partition: records for tp, records in found.items() if tp.partition in self._owned}
            for partition, records in came.items():
                self._take(partition, records)
            for tp in sorted(self._given):
                if tp.partition not in self._owned:
                    self._take_over(tp)
            self._watch_idle()
            self._send(stop)
            for partition in self._owned:
                self._tell(partition)
            self._lead()
        except KafkaError as error:
            right = f"Read topic {self._events.topic}, Write topic {self._events.progress}"
            raise failure(self._events.kafka, error, right, "did not complete a request of the edge") from error
        return sum(map(len, came.values()))

    @property
    def caught_up(self) -> bool:
        """Whether this process has read all records that are there now, and partitions were given to it."""
        ends = self._consumer.end_offsets(list(self._given))
        return bool(ends) and all(
            tp.partition in self._owned and self._consumer.position(tp) >= end for tp, end in ends.items()
        )

    @property
    def waiting(self) -> bool:
        """Whether a period has ended everywhere, and was not sent by all."""
        states = self._states()
        sent = min((states[n].totals.through if n in states else -1 for n in range(self._count)), default=-1)
        return next_closed(self._closed, states, self._count) > sent

    def take(self, progress: Progress = lambda name, state: None, stop: Stop = never) -> int:
        """Read the records that are there, and send what has ended. How many records these were."""
        taken = 0
        while True:  # at least once: partitions may have become idle
            if came := self.poll(POLL_SECONDS, stop):
                taken += came
                progress(self._events.topic, self.state)
            if self.caught_up and not self.waiting:
                return taken
            if stop():
                raise Stopped(f"stopped while {self._events.topic} was read", "start it again to go on")

    def end(self, moment: datetime, stop: Stop = never) -> None:
        """Send and close all periods that end until then: their later events are late."""
        for partition in self._owned.values():
            partition.end(moment)
        self.poll(0, stop)
        while self.waiting and not stop():
            self.poll(POLL_SECONDS, stop)
        if 0 in self._owned:
            closed = min(self._calendar.closed(micros(moment)), self._closed)
            self._clock.finish(closed)
            self._memos.finish(closed)

    @property
    def state(self) -> EdgeState:
        """What all partitions have counted."""
        return together(self._states().values())

    def close(self) -> None:
        self._release(self._owned)
        for client in (self._consumer, self._progress, self._producer):
            client.close()
        os.close(self._lock)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._given.difference_update(revoked)
        self._release([tp.partition for tp in revoked])

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """They are taken over by `poll`."""
        self._given = set(assigned)

    def _take(self, partition: int, records: Sequence[Record]) -> None:
        where = f"partition {partition} of {self._events.topic}"
        read = partial(decode, read=self._events.read, encoding=self._events.encoding, where=where)
        self._owned[partition].take(records, read)
        self._came[partition] = monotonic()

    def _take_over(self, tp: TopicPartition) -> None:
        """Go on where the last owner of a partition was."""
        self._require(max(tp.partition + 1, self._count))
        self._follow()
        state = self._others.get(tp.partition, PartitionState())
        begin = self._consumer.beginning_offsets([tp])[tp]
        if begin > state.restart and tp.partition in self._others:
            raise ReplayError(
                f"partition {tp.partition} of {tp.topic} begins at offset {begin:,}, and its open periods at "
                f"{state.restart:,}: events that were not sent are gone",
                "let the topic keep events for longer than a period, its lateness and the longest outage; to leave out "
                "what is gone, give the survey a new id and other data",
            )
        self._owned[tp.partition] = self._open(self._workspace / f"partition-{tp.partition}", state)
        self._came[tp.partition] = monotonic()
        self._consumer.seek(tp, max(state.restart, begin))
        log.info("partition taken over", topic=tp.topic, partition=tp.partition, offset=max(state.restart, begin))

    def _require(self, partitions: int) -> None:
        """Refuse another number of partitions: Kafka would have given people others in between."""
        if partitions != self._count:
            raise ReplayError(
                f"{self._events.topic} has other partitions than before: a person's events may be in two of them",
                "make a new topic, and give the survey a new id and other data",
            )

    def _release(self, partitions: Mapping[int, object] | Sequence[int]) -> None:
        """Others may own these now. What was held of them is erased here."""
        for partition in list(partitions):
            if partition in self._owned:
                self._owned.pop(partition).close()
                self._told.pop(partition, None)

    def _watch_idle(self) -> None:
        for number, partition in self._owned.items():
            quiet = monotonic() - self._came[number] > self._events.idle.total_seconds()
            if quiet and not partition.state.idle and partition.caught_up:
                tp = TopicPartition(self._events.topic, number)
                if self._consumer.position(tp) >= self._consumer.end_offsets([tp])[tp]:  # and not only a silent broker
                    partition.pause()

    def _send(self, stop: Stop) -> None:
        """Send what is closed for all. Of a period without events there is only that to tell."""
        closed = self._closed
        for number, partition in self._owned.items():
            if partition.caught_up and partition.state.totals.through < closed:
                partition.cut(closed)
                self._tell(number)
                partition.send(closed, stop)
                self._tell(number)

    def _lead(self) -> None:
        """The owner of partition 0: close for all what has ended everywhere, when all have sent what was before."""
        if 0 not in self._owned:
            return
        states, closed = self._states(), self._closed
        sent = min(state.totals.through for state in states.values()) if len(states) == self._count else -1
        if sent >= closed > self._finished:
            self._clock.advance(closed + 1)
            self._memos.finish(closed)
            self._finished = closed
        if (following := next_closed(closed, states, self._count)) > closed:
            self._clock.advance(following)
            self._write(self._survey, {"closed": following, "partitions": self._count})
            self._closed = following

    def _states(self) -> dict[int, PartitionState]:
        return {**self._others, **{number: one.state for number, one in self._owned.items()}}

    def _tell(self, number: int) -> None:
        """Publish how far a partition has come: at once if others wait for it, otherwise now and then."""
        state, (at, last) = self._owned[number].state, self._told.get(number, (-TELL_SECONDS, None))
        quiet = last is not None and _news(state) == _news(last)
        if state == last or (quiet and monotonic() - at < TELL_SECONDS):
            return
        self._write(f"{self._survey}/{number}", asdict(state))
        self._told[number] = monotonic(), state

    def _write(self, key: str, value: Mapping[str, Any]) -> None:
        sent = self._producer.send(self._events.progress, json.dumps(value).encode(), key=key.encode(), partition=0)
        sent.get(timeout=WRITE_SECONDS)

    def _follow(self) -> None:
        """Read what was published, to the end that it has now."""
        end, begun = self._progress.end_offsets([self._log])[self._log], monotonic()
        while self._progress.position(self._log) < end:
            if monotonic() - begun > WRITE_SECONDS:
                what = f"sent nothing of {self._events.progress} for {WRITE_SECONDS:.0f} seconds"
                raise ServerUnavailable(f"Kafka at {self._events.kafka.bootstrap} {what}", NO_KAFKA)
            for record in self._progress.poll(timeout_ms=1000).get(self._log, ()):
                survey, _, partition = record.key.decode().partition("/")
                if survey != self._survey:
                    continue
                if partition:
                    self._others[int(partition)] = _STATE.validate_json(record.value)
                else:
                    told = json.loads(record.value)
                    self._require(told["partitions"])
                    self._closed = max(self._closed, told["closed"])


_STATE = TypeAdapter(PartitionState)


def _news(state: PartitionState) -> tuple[object, ...]:
    """What others wait for."""
    return state.ended, state.idle, state.open, state.cuts, state.totals


def _remove(left: Path, memos: SurveyMemos) -> None:
    """Remove the events of a partition that a process has left; release 0.2 has sealed them for life."""
    if memos.keys.forget_after is not None:
        for path in left.iterdir():
            discard(path)
    shutil.rmtree(left)


def _create(events: EventsTopic) -> None:
    """Make the topic of progress where there is none. It is compacted: the last word on each partition is kept."""
    topic = NewTopic(events.progress, 1, -1, topic_configs={"cleanup.policy": "compact"})
    with connected(KafkaAdminClient, events.kafka, OPEN_SECONDS, right=f"Create topic {events.progress}") as admin:
        if events.progress not in admin.list_topics():
            with suppress(TopicAlreadyExistsError):
                admin.create_topics([topic])
