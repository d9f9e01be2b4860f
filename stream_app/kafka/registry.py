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
from protocols.scheme import Scheme, confined_to
from protocols.survey import Survey
from protocols.wire import collectable
from servers.kafka_clients import DURABLE, connected
from servers.settings import KafkaSettings
from stream_app.kafka.reading import header, read_topic
from stream_app.kafka.topics import ANSWER_SECONDS, Topics
from stream_app.log.codec import RECORD_BYTES
from stream_app.sizes import check_sizes

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
    """The published surveys, compiled and tried, as records are read. One that cannot be used here is left out.

    Why is logged, and in `refused`: whatever is wrong with one survey must not end the collection of all others.
    """

    def __init__(self) -> None:
        self.schemes: dict[str, Scheme] = {}  # by id, as far as the registry was read
        self.refused: dict[str, str] = {}  # by id, or by record if that has none: why no report is taken
        self._published: dict[str, Published] = {}  # under the terms that hold: the first ones
        self._failing: dict[str, str] = {}  # registered surveys at which something fails now

    def register(self, record: Any) -> None:
        """Add a survey, or its new texts. To read a record again changes nothing."""
        if record.value is None:
            return
        name = f"record {record.offset} of {record.topic}"
        try:
            with confined_to(name):
                survey = admit(self._published, record)
            if survey is None:
                log.error("a survey was published again under other terms; the first ones hold", offset=record.offset)
                return
            if survey.id in self.schemes and self.schemes[survey.id].survey == survey:
                return
            name = survey.id
            scheme = collectable(survey)
            _require_published_terms(scheme, self._published[survey.id])
        except HearsayError as error:
            self._refuse(name, record, error)
            return
        self.schemes[survey.id] = scheme
        self.refused.pop(survey.id, None)
        log.info("survey registered", survey=survey.id, fingerprint=scheme.fingerprint)

    def _refuse(self, name: str, record: Any, error: HearsayError) -> None:
        """Log why a record is left out. New texts that cannot be used leave the survey as it was."""
        if name not in self.schemes:
            self.refused[name] = error.message
        about = {"survey": name, "offset": record.offset, "error": error.message, "advice": error.hint}
        log.error("a published survey cannot be used", **about, exc_info=error.__cause__)

    def note_failing(self, survey: str, error: HearsayError) -> None:
        """Say at which registered survey something fails: once in the log, and in `refused` while it does."""
        if self._failing.get(survey) != error.message:
            log.error(
                "periods of a survey cannot be closed", survey=survey, error=error.message, exc_info=error.__cause__
            )
        self._failing[survey] = error.message
        self.refused[survey] = error.message

    def note_working(self, survey: str) -> None:
        """The same survey works again."""
        if self._failing.pop(survey, None) is not None:
            self.refused.pop(survey, None)
            log.info("periods of a survey are closed again", survey=survey)


def _require_published_terms(scheme: Scheme, published: Published) -> None:
    if scheme.fingerprint != published.fingerprint:
        raise FingerprintChanged(
            "this release or kind of machine resolves a survey to other terms than it was published with: "
            f"{published.fingerprint} when it was published, {scheme.fingerprint} here",
            "run the release that published it, or publish the survey under a new id",
        )


def publish(kafka: KafkaSettings, topics: Topics, survey: Survey) -> bool:
    """Publish a survey; False if exactly this one is published already. Titles and texts may change, terms may not."""
    mine = Published(survey, collectable(survey).fingerprint, round(time.time(), 3))
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
