"""Reading published results: the same for every store, which provides only the messages of a topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from protocols.errors import ResultsError
from stream_app.log.flushes import Output, TopicName
from stream_app.results.forecast_result import ForecastResult
from stream_app.results.histograms import Histogram, Live
from stream_app.results.mobility import MobilityResult
from stream_app.results.result_topics import FORECASTS, HISTOGRAMS, LIVE, MOBILITY, ResultKey, ResultTopic

FOREIGN = "was it written by another version, or by something else than a worker?"

R = TypeVar("R", bound=BaseModel)


class _Versioned(BaseModel):
    """The part of a result that every version of every model has."""

    schema_version: int


class PublishedResults(ABC):
    """The published results of any number of surveys."""

    @abstractmethod
    def messages(self, topic: TopicName) -> Iterator[Output]:
        """Every message of a topic, in the order of publication."""

    def read(self, topic: ResultTopic[R], survey: str) -> list[R]:
        """The results of a survey on one topic, by period."""
        return [_decode(topic, key, value) for key, value in self.values(topic, survey).items()]

    def values(self, topic: ResultTopic[Any], survey: str | None = None) -> dict[ResultKey, bytes]:
        """The value that holds for each key, as published, in the order of the keys; of one survey or of all.

        A crash may repeat a record. Where the first one holds, a repetition must have the same bytes.
        """
        found: dict[ResultKey, bytes] = {}
        for message in self.messages(topic.name):
            key = _decode_key(topic, message.key)
            if survey not in (None, key.survey):
                continue
            if topic.keep == "newest":
                found[key] = message.value
            elif found.setdefault(key, message.value) != message.value:
                raise ResultsError(
                    f"{_place(topic, key)}: published twice with different values",
                    "keep the topic as it is and report this: a final result must never change",
                )
        return dict(sorted(found.items(), key=itemgetter(0)))

    def histograms(self, survey: str) -> list[Histogram]:
        """The final histograms of a survey, by period."""
        return self.read(HISTOGRAMS, survey)

    def mobility(self, survey: str) -> list[MobilityResult]:
        """The mobility reports of a survey, by period."""
        return self.read(MOBILITY, survey)

    def forecasts(self, survey: str) -> list[ForecastResult]:
        """The forecasts that were published after each period of a survey."""
        return self.read(FORECASTS, survey)

    def live(self, survey: str) -> Live | None:
        """The newest published status of a survey."""
        return next(iter(self.read(LIVE, survey)), None)


def _decode_key(topic: ResultTopic[Any], key: bytes) -> ResultKey:
    try:
        return topic.decode_key(key)
    except ValueError:
        raise ResultsError(
            f"topic {topic.name}: a record has the key {key!r} instead of {topic.key}", FOREIGN
        ) from None


def _decode(topic: ResultTopic[R], key: ResultKey, value: bytes) -> R:
    """The result in a record, if this program knows its version."""
    try:
        version = _Versioned.model_validate_json(value).schema_version
        if version > topic.schema_version:
            raise ResultsError(
                f"{_place(topic, key)}: schema version {version}; this program reads versions up to "
                f"{topic.schema_version}",
                "upgrade hearsay here to the version of the workers that published it",
            )
        return topic.model.model_validate_json(value)
    except ValidationError as error:
        raise ResultsError(f"{_place(topic, key)}: the record is not a {topic.kind} result: {error}", FOREIGN) from None


def _place(topic: ResultTopic[Any], key: ResultKey) -> str:
    return f"topic {topic.name}, key {key.encode().decode()}"
