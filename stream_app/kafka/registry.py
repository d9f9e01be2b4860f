"""The survey registry: a compacted topic with one survey under each id. Its terms never change."""

from __future__ import annotations

from kafka import KafkaProducer
from kafka.errors import KafkaError
from pydantic import ValidationError

from protocols.errors import FingerprintChanged, ServerUnavailable, SurveyError, TopicError
from protocols.scheme import Scheme
from protocols.survey import Survey
from servers.kafka_clients import opened
from servers.settings import NO_KAFKA, KafkaSettings
from stream_app.kafka.reading import read_topic
from stream_app.kafka.topics import ANSWER_SECONDS, Topics

MOST_COUNTERS = 400_000
"""The most counters (by gap and value) that fit in a record together with their result."""


def published(kafka: KafkaSettings, topics: Topics) -> dict[str, Survey]:
    """All surveys, by id. If an id has several records, its terms are those of the first, its texts those of the last.

    Later records with other terms are ignored.
    """
    found: dict[str, Survey] = {}
    for record in read_topic(kafka, topics.surveys):
        if record.value is None:
            continue
        try:
            survey = Survey.model_validate_json(record.value)
        except ValidationError as error:
            raise TopicError(
                f"record {record.offset} of {topics.surveys} is not a survey: {error}",
                "was it written by a newer version, or by something other than `hearsay survey publish`?",
            ) from None
        if survey.id not in found or found[survey.id].fingerprint == survey.fingerprint:
            found[survey.id] = survey
    return found


def publish(kafka: KafkaSettings, topics: Topics, survey: Survey) -> bool:
    """Publish a survey; False if exactly this one is published already. Titles and texts may change, terms may not."""
    counters = survey.horizon * sum(question.k for question in Scheme(survey).questions)
    if counters > MOST_COUNTERS:
        raise SurveyError(
            f"survey {survey.id!r}: {counters:,} counters (horizon times values) do not fit in a record",
            f"use a shorter horizon or fewer values: horizon times values may be {MOST_COUNTERS:,} at most",
        )
    known = published(kafka, topics).get(survey.id)
    if known == survey:
        return False
    if known is not None and known.fingerprint != survey.fingerprint:
        raise _changed(survey)
    _write(kafka, topics, survey)
    first = published(kafka, topics)[survey.id]
    if first.fingerprint != survey.fingerprint:
        # Another process published first. Write its survey again, so that compaction keeps the terms that hold.
        _write(kafka, topics, first)
        raise _changed(survey)
    return True


def _changed(survey: Survey) -> FingerprintChanged:
    return FingerprintChanged(
        f"survey {survey.id!r} is already published with other terms",
        "give the changed survey a new id, for example with a version",
    )


def _write(kafka: KafkaSettings, topics: Topics, survey: Survey) -> None:
    try:
        producer = opened(KafkaProducer, kafka, ANSWER_SECONDS, acks="all", enable_idempotence=True)
        try:
            value = survey.model_dump_json().encode()
            producer.send(topics.surveys, value, key=survey.id.encode(), partition=0).get(timeout=30)
        finally:
            producer.close()
    except KafkaError as error:
        raise ServerUnavailable(
            f"Kafka at {kafka.bootstrap}: publishing the survey failed: {error}", NO_KAFKA
        ) from error
