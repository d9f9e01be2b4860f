"""The topics: their names and required configuration with the reasons, creating them, and checking existing ones."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import TopicAlreadyExistsError, TopicAuthorizationFailedError

from protocols.errors import TopicError
from servers.kafka_clients import connected, not_allowed
from servers.settings import KafkaSettings
from stream_app.log.codec import RECORD_BYTES
from stream_app.log.flushes import DEADLETTERS, FINALS, OPEN, PARTIALS, RESULTS, TopicName

FRAME_BYTES = 4 * 1024 * 1024
"""The largest record accepted on the reports topic: more than a frame of several thousand reports needs."""
DAY_MS = 24 * 60 * 60 * 1000
FOREVER = -1
REPLACED_RETENTION_MS = 7 * DAY_MS
"""How long a result is kept on a topic where newer results replace older ones."""
COMPACTION_LAG_MS = 60_000
"""How long a changelog keeps every record, so that the last writes before a crash can be examined."""
ANSWER_SECONDS = 10.0
"""How long to wait for a cluster's first answer."""

COUNTING_TABLE = "counting"
MERGING_TABLE = "merging"


@dataclass(frozen=True)
class Topic:
    """The required configuration of one topic. `why` is the reason for its clean-up policy."""

    name: str
    partitions: int
    policy: str
    why: str
    retention_ms: int = FOREVER
    max_bytes: int = RECORD_BYTES
    compaction_lag_ms: int = 0
    tuning: Mapping[str, str] = field(default_factory=dict)
    """Settings for speed and size. They are set at creation and not checked."""

    @property
    def configs(self) -> dict[str, str]:
        """The topic settings with which it is created."""
        return {
            "cleanup.policy": self.policy,
            "retention.ms": str(self.retention_ms),
            "retention.bytes": "-1",
            "max.message.bytes": str(self.max_bytes),
            "min.compaction.lag.ms": str(self.compaction_lag_ms),
            **self.tuning,
        }


class _Name:
    """The name of a topic, which begins with the prefix of `Topics`."""

    def __init__(self, rest: str) -> None:
        self._rest = rest

    def __get__(self, topics: "Topics", kind: type["Topics"]) -> str:
        return topics.prefix + self._rest


@dataclass(frozen=True)
class Topics:
    """The names and required configuration of all topics. The prefix is also the id of the Faust app.

    >>> Topics().reports, Topics().counting_changelog
    ('hearsay.reports', 'hearsay-counting-changelog')
    """

    prefix: str = "hearsay"
    partitions: int = 8
    merge_partitions: int = 4
    retention_days: int = 30

    reports = _Name(".reports")  # and clock records: the input
    surveys = _Name(".surveys")  # the survey registry
    partials = _Name(f".{PARTIALS}")  # the counts and the progress of each input partition
    finals = _Name(f".{FINALS}")  # what is released of every closed period
    open = _Name(f".{OPEN}")  # what is open of every survey
    deadletters = _Name(f".{DEADLETTERS}")  # every rejected record, with the reason
    counting_changelog = _Name(f"-{COUNTING_TABLE}-changelog")  # Faust chooses these names
    merging_changelog = _Name(f"-{MERGING_TABLE}-changelog")

    def named(self, topic: TopicName) -> str:
        """The full name of a topic that the app writes to."""
        return f"{self.prefix}.{topic}"

    def all(self) -> list[Topic]:
        """The required configuration of every topic."""
        kept = self.retention_days * DAY_MS
        # Retention by arrival time: a sender with a wrong clock must not shorten or extend it.
        arrival = {"message.timestamp.type": "LogAppendTime"}
        # When a survey was first published: the same in every later record of it.
        first = {"message.timestamp.type": "CreateTime"}
        # Compaction skips the newest segment, so a recovery reads at least one whole segment: keep segments small.
        changelog = {"segment.bytes": str(64 * 1024 * 1024), "min.cleanable.dirty.ratio": "0.2"}
        offsets = "counting needs consecutive offsets"
        newest = "only the newest record of a key matters, and it must never expire"
        stays = "delete", "a result is published once and must stay readable", FOREVER
        replaced = "compact,delete", "a newer result replaces an older one", REPLACED_RETENTION_MS
        changelogs = (self.counting_changelog, self.partitions), (self.merging_changelog, self.merge_partitions)
        return [
            Topic(self.reports, self.partitions, "delete", offsets, kept, FRAME_BYTES, tuning=arrival),
            Topic(self.surveys, 1, "compact", newest, tuning=first),
            Topic(self.partials, self.merge_partitions, "delete", offsets, kept),
            Topic(self.finals, 1, "delete", "a final is published once, and results are made of it at any time"),
            Topic(self.open, 1, *replaced),
            *(Topic(self.named(topic.name), 1, *(replaced if topic.replaced else stays)) for topic in RESULTS),
            Topic(self.deadletters, 1, "delete", "every rejected record must stay readable", kept, tuning=arrival),
            *(
                Topic(*one, "compact", newest, FOREVER, RECORD_BYTES, COMPACTION_LAG_MS, changelog)
                for one in changelogs
            ),
        ]


@dataclass(frozen=True)
class Mismatch:
    """A setting of a topic that differs from the required one, and the reason why that matters."""

    topic: str
    setting: str
    found: str
    wanted: str
    why: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.setting} is {self.found} and must be {self.wanted}: {self.why}"


def create(kafka: KafkaSettings, topics: Topics, *, replication: int = -1) -> list[str]:
    """Create the topics that do not exist yet and return their names. Existing topics are not changed.

    `replication` -1 means the cluster's default.
    """
    right = f"Create topics {topics.prefix}.*"
    with connected(KafkaAdminClient, kafka, ANSWER_SECONDS, right) as admin:
        present = set(admin.list_topics())
        missing = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": replication,
                "configs": topic.configs,
            }
            for topic in topics.all()
            if topic.name not in present
        }
        if missing:
            with suppress(TopicAlreadyExistsError):  # another process is creating the same topics at this moment
                admin.create_topics(missing)
            admin.wait_for_topics(list(missing), timeout_ms=30_000)
    return list(missing)


def check(kafka: KafkaSettings, topics: Topics) -> list[Mismatch]:
    """Every setting of the topics that differs from the required one."""
    wanted = {topic.name: topic for topic in topics.all()}
    counts = partition_counts(kafka, list(wanted))
    missing = [name for name in wanted if not counts[name]]
    mismatches = [Mismatch(name, "the topic", "missing", "present", "run `hearsay topics create`") for name in missing]
    found = [name for name in wanted if counts[name]]
    configs = _configs(kafka, topics, found)
    for name in found:
        mismatches += _compare(wanted[name], counts[name], configs[name])
    return mismatches


def retentions(kafka: KafkaSettings | None, topics: Topics) -> dict[str, str]:
    """How long each topic keeps records, in words: on a cluster, or as `create` makes them."""
    configs = {topic.name: topic.configs for topic in topics.all()}
    if kafka is not None:
        configs = _configs(kafka, topics, list(configs))
    return {
        name: f"{int(found['retention.ms']) / DAY_MS:g} days"
        if "delete" in found["cleanup.policy"] and int(found["retention.ms"]) != FOREVER
        else "for ever"
        for name, found in configs.items()
    }


def existing(kafka: KafkaSettings, prefix: str | None = None) -> Topics:
    """The topics of this cluster, with the numbers of partitions of their state, which cannot change."""
    names = Topics(prefix or kafka.prefix)
    counts = partition_counts(kafka, _read(names))
    partitions = counts[names.counting_changelog] or counts[names.reports]
    merge_partitions = counts[names.merging_changelog] or counts[names.partials]
    missing = [name for name in (names.reports, names.partials) if not counts[name]]
    where = "" if names.prefix == kafka.prefix else f" --prefix {names.prefix}"
    if missing and counts[names.counting_changelog] and counts[names.merging_changelog]:
        raise TopicError(
            f"topic {' and '.join(missing)} was deleted: the state that was counted from it is on {kafka.bootstrap}",
            f"bring it back, or make it again with as many partitions: `hearsay topics create{where} --partitions "
            f"{partitions} --merge-partitions {merge_partitions}`; then read in docs/operations.md what to do about a "
            "log that cannot be read on",
        )
    if missing:
        raise TopicError(
            f"topics {names.reports} and {names.partials} do not both exist on {kafka.bootstrap}",
            f"run `hearsay topics create{where}`",
        )
    return Topics(names.prefix, partitions, merge_partitions)


def check_partitions(kafka: KafkaSettings, topics: Topics) -> None:
    """Raise TopicError if a topic that is counted or merged has another number of partitions than its state."""
    counts = partition_counts(kafka, _read(topics))
    for name, state in ((topics.reports, topics.counting_changelog), (topics.partials, topics.merging_changelog)):
        if counts[state] and counts[name] != counts[state]:
            raise TopicError(
                f"topic {name} has {counts[name]} partitions, but its state has {counts[state]}: were some added?",
                "read in docs/operations.md what to do about partitions that were added",
            )


def _read(topics: Topics) -> list[str]:
    """The topics that are read, and their changelogs."""
    return [topics.reports, topics.partials, topics.counting_changelog, topics.merging_changelog]


def partition_counts(kafka: KafkaSettings, names: list[str]) -> dict[str, int]:
    """How many partitions topics have; 0 if there is no such topic. Raises NotAllowed for those that are not shown."""
    with connected(KafkaAdminClient, kafka, ANSWER_SECONDS) as admin:
        described = admin.describe_topics(names)
    hidden = [one["name"] for one in described if one["error_code"] == TopicAuthorizationFailedError.errno]
    if hidden:
        raise not_allowed(kafka, *(f"Describe topic {name}" for name in sorted(hidden)))
    return {one["name"]: len(one["partitions"]) for one in described}


def cluster_id(kafka: KafkaSettings) -> str:
    """The id of the cluster: the same at each of its addresses, and another on every other cluster."""
    with connected(KafkaAdminClient, kafka, ANSWER_SECONDS) as admin:
        return str(admin.describe_cluster()["cluster_id"])


def _compare(topic: Topic, partitions: int, configs: Mapping[str, str]) -> Iterator[Mismatch]:
    if partitions != topic.partitions:
        why = "the partition of a token or a state record depends on this number; it cannot change once there is data"
        yield Mismatch(topic.name, "the number of partitions", str(partitions), str(topic.partitions), why)
    policy = configs["cleanup.policy"]
    if set(policy.split(",")) != set(topic.policy.split(",")):
        yield Mismatch(topic.name, "cleanup.policy", policy, topic.policy, topic.why)
    deleted = "records would be deleted before they are needed" if "delete" in topic.policy else ""
    at_least = {
        "retention.ms": deleted,
        "retention.bytes": deleted,
        "max.message.bytes": "the broker would refuse larger records",
        "min.compaction.lag.ms": "the last writes before a crash could not be examined",
    }
    for setting, why in at_least.items():
        if why and _number(configs[setting]) < _number(topic.configs[setting]):
            yield Mismatch(topic.name, setting, configs[setting], f"at least {topic.configs[setting]}", why)


def _number(value: str) -> float:
    """The value of a setting; -1 means no limit."""
    return float("inf") if int(value) == FOREVER else int(value)


def _configs(kafka: KafkaSettings, topics: Topics, names: list[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    with connected(KafkaAdminClient, kafka, ANSWER_SECONDS, f"DescribeConfigs topics {topics.prefix}.*") as admin:
        described = admin.describe_configs(resources, config_filter="all")["topic"]
    return {name: {key: entry["value"] for key, entry in configs.items()} for name, configs in described.items()}
