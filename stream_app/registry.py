"""The survey registry: a compacted topic with one survey under each id, whose terms never change."""

from __future__ import annotations

from kafka import KafkaProducer
from kafka.errors import KafkaError

from protocols.errors import FingerprintChanged, ServerUnavailable, SurveyError
from protocols.kafka_opening import opened
from protocols.scheme import Scheme
from protocols.settings import NO_KAFKA, KafkaSettings
from protocols.survey import Survey
from stream_app.reading import read_topic
from stream_app.topics import ANSWER_SECONDS, Topics

MOST_CELLS = 400_000
"""Counters by gap and value that fit in a record together with the result made of them."""


def published(kafka: KafkaSettings, topics: Topics) -> dict[str, Survey]:
    """All surveys, by id."""
    records = read_topic(kafka, topics.surveys)
    return {record.key.decode(): Survey.model_validate_json(record.value) for record in records if record.value}


def publish(kafka: KafkaSettings, topics: Topics, survey: Survey) -> bool:
    """Publish a survey; False if it was published before, exactly so. Words for people may change, terms may not."""
    cells = survey.horizon * sum(question.k for question in Scheme(survey).questions)
    if cells > MOST_CELLS:
        raise SurveyError(
            f"survey {survey.id!r}: {cells:,} counters (horizon times values) do not fit in a record",
            f"keep horizon times values below {MOST_CELLS:,}: a shorter horizon, or fewer values",
        )
    known = published(kafka, topics).get(survey.id)
    if known == survey:
        return False
    if known is not None and known.fingerprint != survey.fingerprint:
        raise FingerprintChanged(
            f"survey {survey.id!r} is published with other terms", "give changed terms a new id, such as a version"
        )
    try:
        producer = opened(KafkaProducer, kafka, ANSWER_SECONDS, acks="all", enable_idempotence=True)
        try:
            value = survey.model_dump_json().encode()
            producer.send(topics.surveys, value, key=survey.id.encode(), partition=0).get(timeout=30)
        finally:
            producer.close()
    except KafkaError as error:
        raise ServerUnavailable(f"Kafka at {kafka.bootstrap} did not take the survey: {error}", NO_KAFKA) from error
    return True
