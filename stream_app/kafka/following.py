"""Reading result topics and the survey registry: to their present ends, or on as they grow."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError

from protocols.errors import TopicError
from protocols.survey import Survey
from servers.kafka_clients import opened
from servers.settings import KafkaSettings
from stream_app.finals import FinalKey
from stream_app.kafka.decompression import limit_decompression
from stream_app.kafka.reading import ends, explained, read_topic
from stream_app.kafka.registry import Published, admit, published
from stream_app.kafka.topics import ANSWER_SECONDS, Topics
from stream_app.log.flushes import FINALS, RESULTS, Come, Output, TopicName

RESULT_NAMES = tuple(topic.name for topic in RESULTS)
ASK_SECONDS = 10
"""How long an answer about topics and groups may take."""
MOST_RECORDS = 50
"""How many records one call returns at most: what is made of them takes some milliseconds each."""


class TopicFollower:
    """One consumer of some topics with results, or of finals, and of the registry; without a group.

    The registry is read first: results are about surveys. The place of a message is that of its topic in `names`.
    `identity` is a digest of the ids of the topics. One thread reads. What is asked about the topics
    (`present_identity`, `lag`) may be asked by another one.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Topics,
        names: Sequence[TopicName] = RESULT_NAMES,
    ) -> None:
        limit_decompression(kafka.max_batch_bytes)
        self._kafka = kafka
        self._topics = topics
        self._registry: dict[str, Published] = {}
        self._names = [topics.surveys, *map(topics.named, names)]
        self._results = names
        self.places = len(names)
        self._partitions = [TopicPartition(name, 0) for name in self._names]
        self._admin = opened(KafkaAdminClient, kafka, ANSWER_SECONDS, request_timeout_ms=ASK_SECONDS * 1000)
        try:
            self.identity = self.present_identity()
            self._consumer = opened(
                KafkaConsumer,
                kafka,
                ANSWER_SECONDS,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                max_poll_records=MOST_RECORDS,
            )
        except BaseException:
            self._admin.close()
            raise
        with explained(self._kafka, "results"):
            self._consumer.assign(self._partitions)
            self._consumer.pause(*self._partitions[1:])
            self._ends = self._consumer.end_offsets(self._partitions)

    def present_identity(self) -> str:
        """The identity of the topics that the cluster has now: another one if a topic was made again."""
        with explained(self._kafka, "results"):
            described = self._admin.describe_topics(self._names)
        for topic in described:
            if topic["error_code"]:
                raise TopicError(
                    f"topic {topic['name']} does not exist on {self._kafka.bootstrap}", "run `hearsay topics create`"
                )
        ids = sorted(f"{topic['name']} {topic['topic_id']}" for topic in described)
        return sha256("\n".join(ids).encode()).hexdigest()[:16]

    def poll(self, seconds: float) -> Come:
        """What has come since the last call; waits for something for at most so long."""
        registry = self._partitions[0]
        with explained(self._kafka, "results"):
            if self._consumer.paused() and self._consumer.position(registry) >= self._ends[registry]:
                self._consumer.resume(*self._partitions[1:])
            found = self._consumer.poll(timeout_ms=int(seconds * 1000))
        come = Come()
        for record in found.get(registry, ()):
            try:
                survey = admit(self._registry, record)
            except TopicError as error:
                come.unread.append(error)
            else:
                if survey is not None:
                    come.surveys.append(survey)
        for place, name in enumerate(self._results):
            for record in found.get(self._partitions[1 + place], ()):
                if record.value is not None:
                    message = Output(name, record.key or b"", record.value, tuple(record.headers))
                    come.messages.append((place, record.offset, message))
        return come

    def seek(self, offsets: Sequence[int]) -> None:
        """Go on at these offsets, of each place."""
        for partition, offset in zip(self._partitions[1:], offsets, strict=True):
            self._consumer.seek(partition, offset)

    @property
    def caught_up(self) -> bool:
        """Whether all that was there at the beginning has been read."""
        try:
            return all(self._consumer.position(partition) >= end for partition, end in self._ends.items())
        except KafkaError:
            return False

    def lag(self) -> int | None:
        """How many records of the reports topic the workers have not counted, as far as they have said.

        None if it cannot be known: by a user who may not ask about reports and groups, and on a new cluster, where
        nobody knows of the workers' group before the first of them comes.
        """
        try:
            (reports,) = self._admin.describe_topics([self._topics.reports])
            partitions = [TopicPartition(self._topics.reports, number) for number in range(len(reports["partitions"]))]
            ends = self._admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
            begins = self._admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
            groups = self._admin.list_group_offsets({self._topics.prefix: partitions})
        except KafkaError:
            return None
        committed = groups.get(self._topics.prefix, {})
        counted = {tp: committed[tp].offset if tp in committed else -1 for tp in partitions}
        behind: int = sum(max(0, ends[tp].offset - max(begins[tp].offset, counted[tp])) for tp in partitions)
        return behind

    def close(self) -> None:
        with suppress(KafkaError):
            self._consumer.close()
        with suppress(KafkaError):
            self._admin.close()


@dataclass(frozen=True)
class KafkaMessages:
    """What the workers of a cluster have published, as of the moment of reading."""

    kafka: KafkaSettings
    topics: Topics

    def surveys(self) -> list[Survey]:
        """The published surveys."""
        return [known.survey for known in published(self.kafka, self.topics).values()]

    def messages(self, topic: TopicName) -> Iterator[Output]:
        """Every message of a topic, in the order of publication."""
        for record in read_topic(self.kafka, self.topics.named(topic)):
            yield Output(topic, record.key, record.value, tuple(record.headers))

    def count(self, topic: TopicName) -> int:
        return sum(ends(self.kafka, self.topics.named(topic)).values())


def last_finals(kafka: KafkaSettings, topics: Topics) -> dict[str, int]:
    """The last final period of every survey that has one."""
    last: dict[str, int] = {}
    for message in KafkaMessages(kafka, topics).messages(FINALS):
        survey, period = FinalKey.decode(message.key)
        last[survey] = max(last.get(survey, -1), period or 0)
    return last
