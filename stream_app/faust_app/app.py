"""The stream app on Faust: two agents with a table each, timers, and the hooks where partitions come and go.

It is run as a process, once the cluster has its topics.
"""

import asyncio
import gc
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import faust
import structlog
import uvloop
from faust.types import TP

from protocols.errors import LogError, ServerError, SurveyError
from protocols.scheme import confined_to
from protocols.survey import Survey
from protocols.wire import Clock, last_due
from servers.memory import release_memory
from servers.settings import KafkaSettings
from stream_app.counting.state import NEVER
from stream_app.counting.tables.loading import count_with_compiled_loops
from stream_app.faust_app.agents import Counting, Merging, PartitionTasks, WorkerOptions
from stream_app.faust_app.broker import READ_MORE, RETRY_SECONDS, LogWatch, StateTable, Surveys
from stream_app.faust_app.crash import fatal, run_watchdog
from stream_app.faust_app.monitoring import RECOVERY_SECONDS, REGISTRY, Health, PartitionState, StateCollector
from stream_app.faust_app.overrides.app import FaustApp
from stream_app.faust_app.overrides.batches import BatchLimits, account_for_all_offsets
from stream_app.faust_app.overrides.opening import open_ahead
from stream_app.faust_app.writing import Writer, owner_of
from stream_app.kafka.clocks import check_clocks
from stream_app.kafka.roles import check_rights, roles
from stream_app.kafka.topics import COUNTING_TABLE, MERGING_TABLE, Topics, check_partitions, existing
from stream_app.log.codec import RECORD_BYTES

TICK_SECONDS = 1.0
KEEP_UP_SECONDS = 2.0
CHECK_LOGS_SECONDS = 3.0
REQUEST_SECONDS = 60.0
HEARTBEAT_SECONDS = 1.0
"""How soon a worker learns that another one has joined, and that partitions are assigned anew."""
METADATA_SECONDS = 10.0
"""How old the list of topics may be. A broker that has just been killed and started may not know all of them yet; the
group's leader then assigns no partition, until it asks again."""
BUFFERED_BATCHES = 4
"""How many fetches of a partition may wait in memory for its agent."""
BATCH_BYTES = 1 << 20
REQUEST_BYTES = 8 * RECORD_BYTES
"""What is larger than a topic allows is for the broker to refuse: what aiokafka refuses ends the process."""
FETCHED_RECORDS = 2000
"""How many records are unpacked at once: as objects, small ones take up many times their bytes."""
BEAT_SECONDS = 1.0
REPEAT_AFTER = timedelta(minutes=1)
"""When to send a clock record again if a partition has not acknowledged it. A survey that is quarantined does not."""

log = structlog.get_logger(__name__)


class StreamApp:
    """Counts reports and merges what was counted."""

    def __init__(self, options: WorkerOptions, health: Health) -> None:
        topics = self._topics = options.topics
        self._health = health
        app = self.faust_app = FaustApp(topics.prefix, _settings(options), self._start)
        watch = self._watch = LogWatch(options.kafka)
        surveys = self._surveys = Surveys(options.kafka, topics.surveys, watch)
        writer = self._writer = Writer(app, topics, options.clock_key)
        counted = StateTable(options.kafka, watch, COUNTING_TABLE, topics.counting_changelog)
        merged = StateTable(options.kafka, watch, MERGING_TABLE, topics.merging_changelog)
        self._counting = Counting(app, topics.reports, counted, writer, watch, options, surveys)
        self._merging = Merging(app, topics.partials, merged, writer, watch, options, surveys)
        self._sent: dict[str, tuple[int, datetime]] = {}  # by survey: the period of its last clock record, and when
        self._assigned_at = 0.0
        self._progress = -1
        self._released_at = 0
        self._both: tuple[PartitionTasks[Any], ...] = (self._counting, self._merging)
        for tasks in self._both:
            app.agent(app.topic(tasks.topic, acks=False), name=tasks.table.name, concurrency=1)(tasks.consume)
        app.timer(TICK_SECONDS)(self._tick)
        app.timer(KEEP_UP_SECONDS)(self._keep_up)
        app.on_partitions_revoked.connect(self._revoked)
        app.on_partitions_assigned.connect(self._assigned)
        app.on_rebalance_complete.connect(self._recover)
        app.on_before_shutdown.connect(self._leaving)
        REGISTRY.register(StateCollector(self._states, surveys.schemes.get))

    async def _start(self) -> None:
        """Start what recovery needs: the surveys. Faust starts its own tasks after this."""
        self._health.ready = self._is_ready
        self._health.refused = self._surveys.refused
        self._health.merging = lambda: frozenset(task.tp.partition for task in self._merging)
        self.faust_app.add_future(self._keep_beating())
        self.faust_app.add_future(self._surveys.follow())
        self.faust_app.add_future(
            run_watchdog(self._recovery_progress, lambda: self._watch.ends([TP(self._counting.topic, 0)]))
        )
        self.faust_app.add_future(self._check_logs())

    async def _keep_beating(self) -> None:
        while True:
            self._health.beat()
            await asyncio.sleep(BEAT_SECONDS)

    def _is_ready(self) -> bool:
        """Whether this worker counts: it has recovered, and no partition has a fault."""
        return self._is_open() and all(state.fault is None for state in self._states())

    def _is_open(self) -> bool:
        return all(tasks.is_open for tasks in self._both)

    def _states(self) -> list[PartitionState]:
        return [state for tasks in self._both for state in tasks.states()]

    def _recovery_progress(self) -> object:
        """A value that changes while recovery makes progress; None once this worker has recovered."""
        recovered = sum(tasks.table.recovered_records for tasks in self._both)
        return None if self._is_open() else (self.faust_app.consumer_generation_id, recovered)

    async def _check_logs(self) -> None:
        with fatal("looking at the logs"):
            while True:
                await asyncio.sleep(CHECK_LOGS_SECONDS)
                await self._counting.check_logs()
                await self._merging.check_logs()
                look, _ = await self._watch.faults(self._topics.surveys, {})
                if not look.topic:
                    raise LogError(f"topic {self._topics.surveys} was deleted", READ_MORE)

    async def _keep_up(self) -> None:
        with fatal("moving the group's offsets and fetching missing records"):
            progress = sum(tasks.progress for tasks in self._both)
            idle, self._progress = progress == self._progress, progress
            for tasks in self._both:
                await tasks.acknowledge()
                await tasks.fetch_missing(idle)
            if idle and progress != self._released_at:  # once after each time in which records were read
                self._released_at = progress
                release_memory()

    async def _tick(self) -> None:
        """Close the periods of surveys with `clock: wall` that are due: their merge owner does so."""
        with fatal("closing periods by the wall clock"):
            now = datetime.now(UTC)
            for survey in [scheme.survey for scheme in self._surveys.schemes.values()]:
                due = self._due(survey, now)
                if due is not None:
                    self._sent[survey.id] = due, now
                    await self._writer.close(Clock(survey.id, due))
                    log.info("clock record sent", survey=survey.id, through=due)

    def _due(self, survey: Survey, now: datetime) -> int | None:
        """Through which period a survey is to be closed now; None if none is, or if that cannot be said."""
        try:
            with confined_to(survey.id):
                due = self._unsent_due(survey, now)
        except SurveyError as error:
            self._surveys.note_failing(survey.id, error)
            return None
        self._surveys.note_working(survey.id)
        return due

    def _unsent_due(self, survey: Survey, now: datetime) -> int | None:
        task = self._merging.get(owner_of(survey.id, self._topics.merge_partitions))
        if survey.clock != "wall" or task is None:
            return None
        closed = task.reader.status(survey.id).closed_everywhere(self._topics.partitions)
        due = last_due(survey, now)
        sent, at = self._sent.get(survey.id, (NEVER, now))
        is_to_be_sent = due > sent or now - at >= REPEAT_AFTER
        return due if due > closed and is_to_be_sent else None

    async def _assigned(self, *args: Any, **kwargs: Any) -> None:
        self._assigned_at = time.monotonic()

    async def _recover(self, *args: Any, **kwargs: Any) -> None:
        """Recover what is assigned. Faust lets records flow after this, if nothing was assigned anew meanwhile."""
        with fatal("recovering"):
            await self._surveys.catch_up()
            await asyncio.gather(*map(self._open, self._both))

    async def _open(self, tasks: PartitionTasks[Any]) -> None:
        await tasks.open(tp.partition for tp in self.faust_app.consumer.assignment() if tp.topic == tasks.topic)
        RECOVERY_SECONDS.labels(tasks.table.name).set(time.monotonic() - self._assigned_at)

    async def _revoked(self, *args: Any, **kwargs: Any) -> None:
        for tasks in self._both:
            tasks.close()

    async def _leaving(self, *args: Any, **kwargs: Any) -> None:
        for tasks in self._both:
            await tasks.finish()


def _settings(options: WorkerOptions) -> dict[str, Any]:
    return {
        "broker": [f"kafka://{broker}" for broker in options.kafka.brokers],
        "broker_credentials": _credentials(options.kafka),
        "broker_session_timeout": options.session_seconds,
        "broker_heartbeat_interval": min(HEARTBEAT_SECONDS, options.session_seconds / 4),
        "broker_request_timeout": max(REQUEST_SECONDS, options.session_seconds),
        "consumer_auto_offset_reset": "earliest",
        "consumer_max_fetch_size": RECORD_BYTES,
        "consumer_metadata_max_age_ms": int(METADATA_SECONDS * 1000),
        "broker_max_poll_records": FETCHED_RECORDS,
        "producer_acks": -1,
        "producer_max_request_size": REQUEST_BYTES,
        "producer_max_batch_size": BATCH_BYTES,
        "producer_request_timeout": REQUEST_SECONDS,
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "stream_wait_empty": False,
        "stream_buffer_maxsize": BUFFERED_BATCHES,
        "table_standby_replicas": 0,
        "web_enabled": False,  # the pages are served from a thread of their own
        "autodiscover": False,
    }


def _credentials(kafka: KafkaSettings) -> Any:
    context = kafka.ssl_context()
    if kafka.sasl_password is not None:
        return faust.SASLCredentials(
            username=kafka.sasl_username,
            password=kafka.sasl_password.get_secret_value(),
            ssl_context=context,
            mechanism=kafka.sasl_mechanism,
        )
    return None if context is None else faust.SSLCredentials(context)


def wait_for_topics(kafka: KafkaSettings, prefix: str, health: Health) -> Topics:
    """The topics on the cluster; waits until a broker answers."""
    while True:
        health.beat()
        try:
            check_rights(kafka, next(role for role in roles(Topics(prefix)) if role.name == "worker"))
            topics = existing(kafka, prefix)
            check_partitions(kafka, topics)
            check_clocks(kafka, topics)
            return topics
        except ServerError as error:
            log.warning("waiting for the broker", kafka=kafka.bootstrap, error=error.message)
            time.sleep(RETRY_SECONDS)


def run_worker(options: WorkerOptions, health: Health) -> None:
    """Count until SIGTERM or SIGINT. Any unexpected error ends the process."""
    uvloop.install()
    count_with_compiled_loops()  # before partitions are assigned and wait for it
    limits = BatchLimits(options.kafka.max_batch_bytes, options.topics.reports)
    account_for_all_offsets(limits)
    open_ahead(limits)
    log.info("starting", kafka=options.kafka.bootstrap, app=options.topics.prefix, partitions=options.topics.partitions)
    app = StreamApp(options, health)
    worker = faust.Worker(app.faust_app, redirect_stdouts=False, override_logging=False, quiet=True)
    worker.spinner = None  # it would write between the lines of the log
    gc.freeze()  # what was imported stays: else every full collection spends 0.12 s on looking at 200,000 objects
    worker.execute_from_commandline()
