"""The survey registry: a compacted topic with one survey under each id. Its terms never change.

A record is a survey as JSON, with the fingerprint of its resolved terms in a header. So a release or a machine that
resolves the same survey to other terms is recognised.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import structlog
from kafka import KafkaProducer
from pydantic import ValidationError

from protocols.errors import FingerprintChanged, HearsayError, TopicError
from protocols.scheme import Scheme
from protocols.survey import Survey
from servers.kafka_clients import DURABLE, connected
from servers.settings import KafkaSettings
from stream_app.finals.sizes import check_sizes
from stream_app.kafka.reading import header, read_topic
from stream_app.kafka.topics import ANSWER_SECONDS, Topics
from stream_app.log.codec import RECORD_BYTES

FINGERPRINT_HEADER = "fingerprint"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Published:
    """A survey, the fingerprint with which it was published, and when it first was (seconds since 1970).

    Texts that change are published at the time of the first record, which compaction removes: gateways derive the keys
    of a period from it, and all must derive the same.
    """

    survey: Survey
    fingerprint: str
    at: float = 0.0


def published(kafka: KafkaSettings, topics: Topics) -> dict[str, Published]:
    """All surveys, by id. If an id has several records, its terms are those of the first, its texts those of the last.

    Later records with other terms are ignored.
    """
    found: dict[str, Published] = {}
    for record in read_topic(kafka, topics.surveys):
        admit(found, record)
    return found


def admit(found: dict[str, Published], record: Any) -> Survey | None:
    """Add a record of the registry to those before it. Returns its survey, or None if it changes nothing."""
    if record.value is None:
        return None
    read = published_in(record)
    known = found.get(read.survey.id)
    if known is not None and known.fingerprint != read.fingerprint:
        return None
    found[read.survey.id] = read if known is None else replace(read, at=known.at)
    return read.survey


def published_in(record: Any) -> Published:
    """The survey in a record of the registry."""
    try:
        if (fingerprint := header(record, FINGERPRINT_HEADER)) is None:
            raise TopicError("it has no fingerprint", "publish surveys with `hearsay survey publish`")
        return Published(Survey.model_validate_json(record.value), fingerprint, record.timestamp / 1000)
    except (ValidationError, TopicError) as error:
        raise TopicError(
            f"record {record.offset} of {record.topic} is not a survey: {error}",
            "was it written by a newer version, or by something other than `hearsay survey publish`?",
        ) from None


class Registry:
    """The published surveys, compiled, as records are read. One that cannot be used here is logged and left out."""

    def __init__(self) -> None:
        self.schemes: dict[str, Scheme] = {}  # by id, as far as the registry was read
        self._published: dict[str, Published] = {}  # under the terms that hold: the first ones

    def register(self, record: Any) -> None:
        """Add a survey, or its new texts. To read a record again changes nothing."""
        if record.value is None:
            return
        try:
            survey = admit(self._published, record)
            if survey is None:
                log.error("a survey was published again under other terms; the first ones hold", offset=record.offset)
            if survey is None or (survey.id in self.schemes and self.schemes[survey.id].survey == survey):
                return
            scheme = Scheme(survey)
        except HearsayError as error:
            log.error("a published survey cannot be used", offset=record.offset, error=str(error))
            return
        published_under = self._published[survey.id].fingerprint
        if scheme.fingerprint != published_under:
            log.error(
                "this release or kind of machine resolves a survey to other terms than it was published with",
                survey=survey.id,
                published=published_under,
                here=scheme.fingerprint,
            )
            return
        self.schemes[survey.id] = scheme
        log.info("survey registered", survey=survey.id, fingerprint=scheme.fingerprint)


def publish(kafka: KafkaSettings, topics: Topics, survey: Survey) -> bool:
    """Publish a survey; False if exactly this one is published already. Titles and texts may change, terms may not."""
    mine = Published(survey, Scheme(survey).fingerprint, round(time.time(), 3))
    check_sizes(survey)
    known = published(kafka, topics).get(survey.id)
    if known is not None:
        mine = replace(mine, at=known.at)
    if known == mine:
        return False
    if known is not None and known.fingerprint != mine.fingerprint:
        raise _changed(survey)
    _write(kafka, topics, mine)
    first = published(kafka, topics)[survey.id]
    if first != mine:
        # Another process published first. Write again what holds, so that compaction keeps its terms and its time.
        _write(kafka, topics, first)
    if first.fingerprint != mine.fingerprint:
        raise _changed(survey)
    return True


def publish_for(kafka: KafkaSettings, topics: Topics, survey: Survey, fingerprint: str) -> bool:
    """Publish the survey of reports that carry this fingerprint; False if it is published with these terms already.

    A published survey keeps its titles and texts. Refused if the reports would be: its terms are others.
    """
    known = published(kafka, topics).get(survey.id)
    if known is None and Scheme(survey).fingerprint == fingerprint:
        return publish(kafka, topics, survey)
    if known is None:
        raise FingerprintChanged(
            f"survey {survey.id!r} is not published, and resolves here to other terms than its reports carry",
            "publish it with the release that made the reports (`hearsay survey publish`), then send them",
        )
    if known.fingerprint != fingerprint:
        raise FingerprintChanged(
            f"survey {survey.id!r} is published with other terms than these reports carry: all would be refused",
            "send them to the cluster of their survey; changed terms need a new id",
        )
    return False


def _changed(survey: Survey) -> FingerprintChanged:
    return FingerprintChanged(
        f"survey {survey.id!r} is already published with other terms",
        "give the changed survey a new id, for example with a version; "
        "if its file is unchanged, another release or kind of machine has resolved it to other terms",
    )


def _write(kafka: KafkaSettings, topics: Topics, known: Published) -> None:
    key, value = known.survey.id.encode(), known.survey.model_dump_json().encode()
    headers, at = [(FINGERPRINT_HEADER, known.fingerprint.encode())], round(known.at * 1000)
    told = f"Write topic {topics.surveys}", "did not take the survey"
    with connected(KafkaProducer, kafka, ANSWER_SECONDS, *told, **DURABLE, max_request_size=RECORD_BYTES) as producer:
        sent = producer.send(topics.surveys, value, key=key, headers=headers, partition=0, timestamp_ms=at)
        sent.get(timeout=30)
