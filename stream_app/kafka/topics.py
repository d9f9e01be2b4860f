"""Our topics: how each must be configured and why, how they are made, and how to tell that one is not as it must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, TopicAlreadyExistsError

from protocols.errors import ServerUnavailable, TopicError
from servers.kafka_clients import opened
from servers.settings import NO_KAFKA, KafkaSettings

FRAME_BYTES = 4 * 1024 * 1024
"""The largest record accepted on the reports topic: a frame of thousands of reports with room to spare."""
RECORD_BYTES = 2 * FRAME_BYTES
"""The largest record the app itself writes: a rejected frame with its explanation, or a large counter."""
DAY_MS = 24 * 60 * 60 * 1000
FOREVER = -1
COMPACTION_LAG_MS = 60_000
"""How long a changelog keeps every record as written, so that one can look at what happened just before a crash."""
ANSWER_SECONDS = 10.0
"""How long a cluster may take to answer at all."""

COUNTING_TABLE = "counting"
MERGING_TABLE = "merging"


@dataclass(frozen=True)
class Topic:
    """One topic as it must be. `why` explains its clean-up policy to whoever finds it otherwise."""

    name: str
    partitions: int
    policy: str
    why: str
    retention_ms: int = FOREVER
    max_bytes: int = RECORD_BYTES
    compaction_lag_ms: int = 0
    tuning: Mapping[str, str] = field(default_factory=dict)
    """Settings that make it fast or small; another value is no mistake."""

    @property
    def configs(self) -> dict[str, str]:
        """What Kafka is told when the topic is made."""
        return {
            "cleanup.policy": self.policy,
            "retention.ms": str(self.retention_ms),
            "retention.bytes": "-1",
            "max.message.bytes": str(self.max_bytes),
            "min.compaction.lag.ms": str(self.compaction_lag_ms),
            **self.tuning,
        }


@dataclass(frozen=True)
class Topics:
    """The names and shapes of all our topics. The prefix is the Faust app's id too.

    >>> Topics().reports, Topics().counting_changelog
    ('hearsay.reports', 'hearsay-counting-changelog')
    """

    prefix: str = "hearsay"
    partitions: int = 8
    merge_partitions: int = 4
    retention_days: int = 30

    @property
    def reports(self) -> str:
        """Reports and clock records: the input."""
        return f"{self.prefix}.reports"

    @property
    def surveys(self) -> str:
        """The survey registry."""
        return f"{self.prefix}.surveys"

    @property
    def partials(self) -> str:
        """What each input partition has counted."""
        return f"{self.prefix}.partials"

    @property
    def live(self) -> str:
        """Provisional results."""
        return f"{self.prefix}.live"

    @property
    def histograms(self) -> str:
        """Final results."""
        return f"{self.prefix}.histograms"

    @property
    def mobility(self) -> str:
        """Windows and mobility reports of closed periods."""
        return f"{self.prefix}.mobility"

    @property
    def deadletters(self) -> str:
        """Whatever was refused, with the reason."""
        return f"{self.prefix}.deadletters"

    @property
    def counting_changelog(self) -> str:
        """The changelog of the counting table, named as Faust names it."""
        return f"{self.prefix}-{COUNTING_TABLE}-changelog"

    @property
    def merging_changelog(self) -> str:
        """The changelog of the merging table."""
        return f"{self.prefix}-{MERGING_TABLE}-changelog"

    def all(self) -> list[Topic]:
        """Every topic as it must be."""
        kept = self.retention_days * DAY_MS
        # Retention goes by when a record arrived: a sender with a wrong clock can neither hasten nor prevent it.
        arrival = {"message.timestamp.type": "LogAppendTime"}
        # Compaction leaves the newest segment alone, so a recovery reads at least one: keep them small.
        changelog = {"segment.bytes": str(64 * 1024 * 1024), "min.cleanable.dirty.ratio": "0.2"}
        offsets = "counting relies on an unbroken run of offsets"
        newest = "only the newest record of a key matters, and it must never expire"
        results = "a result is published once and must stay readable"
        return [
            Topic(self.reports, self.partitions, "delete", offsets, kept, FRAME_BYTES, tuning=arrival),
            Topic(self.surveys, 1, "compact", newest),
            Topic(self.partials, self.merge_partitions, "delete", offsets, kept),
            Topic(self.live, 1, "compact,delete", "provisional results are replaced, then forgotten", 7 * DAY_MS),
            Topic(self.histograms, 1, "delete", results),
            Topic(self.mobility, 1, "delete", results),
            Topic(self.deadletters, 1, "delete", "every refused record must be there to look at", kept, tuning=arrival),
            *(
                Topic(name, partitions, "compact", newest, compaction_lag_ms=COMPACTION_LAG_MS, tuning=changelog)
                for name, partitions in (
                    (self.counting_changelog, self.partitions),
                    (self.merging_changelog, self.merge_partitions),
                )
            ),
        ]


@dataclass(frozen=True)
class Mismatch:
    """Something about a topic that is not as it must be, and what follows from it."""

    topic: str
    setting: str
    found: str
    wanted: str
    why: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.setting} is {self.found} and must be {self.wanted}: {self.why}"


def create(kafka: KafkaSettings, topics: Topics, *, replication: int = -1) -> list[str]:
    """Make the topics that do not exist yet and return their names; those that do exist are left as they are.

    `replication` -1 means the cluster's own default.
    """
    with _admin(kafka) as admin:
        there = set(admin.list_topics())
        missing = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": replication,
                "configs": topic.configs,
            }
            for topic in topics.all()
            if topic.name not in there
        }
        if missing:
            with suppress(TopicAlreadyExistsError):  # somebody else is making them at this moment, from the same list
                admin.create_topics(missing)
            admin.wait_for_topics(list(missing), timeout_ms=30_000)
    return list(missing)


def check(kafka: KafkaSettings, topics: Topics | None = None) -> list[Mismatch]:
    """Everything about the topics that is not as it must be; empty when all is well.

    Without `topics`, the input topics may have any number of partitions, and their changelogs must have the same.
    """
    if topics is None:
        topics = existing(kafka)
    with _admin(kafka) as admin:
        there = set(admin.list_topics())
        wanted = topics.all()
        found = [topic for topic in wanted if topic.name in there]
        mismatches = [
            Mismatch(topic.name, "the topic", "missing", "there", "run `hearsay topics create`")
            for topic in wanted
            if topic.name not in there
        ]
        if not found:
            return mismatches
        partitions = {
            described["name"]: len(described["partitions"])
            for described in admin.describe_topics([topic.name for topic in found])
        }
        configs = _configs(admin, [topic.name for topic in found])
    for topic in found:
        mismatches += _compare(topic, partitions[topic.name], configs[topic.name])
    return mismatches


def existing(kafka: KafkaSettings, prefix: str | None = None) -> Topics:
    """The topics as they are on this cluster: whoever sends or counts learns the numbers of partitions here."""
    names = Topics(prefix or kafka.prefix)
    with _admin(kafka) as admin:
        if not {names.reports, names.partials} <= set(admin.list_topics()):
            where = "" if names.prefix == kafka.prefix else f" --prefix {names.prefix}"
            raise TopicError(
                f"there is no topic {names.reports} on {kafka.bootstrap}", f"run `hearsay topics create{where}`"
            )
        counts = {
            described["name"]: len(described["partitions"])
            for described in admin.describe_topics([names.reports, names.partials])
        }
    return Topics(names.prefix, counts[names.reports], counts[names.partials])


def cluster_id(kafka: KafkaSettings) -> str:
    """What tells this cluster from others, at whatever address it is found."""
    with _admin(kafka) as admin:
        return str(admin.describe_cluster()["cluster_id"])


def _compare(topic: Topic, partitions: int, configs: Mapping[str, str]) -> Iterator[Mismatch]:
    if partitions != topic.partitions:
        why = "a token's or a table's partition follows from this number; it cannot be changed once there is data"
        yield Mismatch(topic.name, "the number of partitions", str(partitions), str(topic.partitions), why)
    policy = configs["cleanup.policy"]
    if set(policy.split(",")) != set(topic.policy.split(",")):
        yield Mismatch(topic.name, "cleanup.policy", policy, topic.policy, topic.why)
    at_least = {
        "retention.ms": "records would be gone before they are needed" if "delete" in topic.policy else "",
        "retention.bytes": "records would be gone before they are needed" if "delete" in topic.policy else "",
        "max.message.bytes": "larger records would be refused by the broker",
        "min.compaction.lag.ms": "the last records before a crash could not be looked at",
    }
    for setting, why in at_least.items():
        if why and _number(configs[setting]) < _number(topic.configs[setting]):
            yield Mismatch(topic.name, setting, configs[setting], f"at least {topic.configs[setting]}", why)


def _number(value: str) -> float:
    """A setting's value, where -1 stands for no limit."""
    return float("inf") if int(value) == FOREVER else int(value)


def _configs(admin: KafkaAdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    described = admin.describe_configs(resources, config_filter="all")["topic"]
    return {name: {key: entry["value"] for key, entry in configs.items()} for name, configs in described.items()}


@contextmanager
def _admin(kafka: KafkaSettings) -> Iterator[KafkaAdminClient]:
    try:
        admin = opened(KafkaAdminClient, kafka, ANSWER_SECONDS)
        try:
            yield admin
        finally:
            admin.close()
    except KafkaError as error:
        raise ServerUnavailable(f"Kafka at {kafka.bootstrap} did not do as asked: {error}", NO_KAFKA) from error
