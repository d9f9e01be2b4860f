"""Reading published results: the same for every store, which provides only the messages of a topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, TypeVar

from pydantic import BaseModel

from analytics.mobility import MobilityReport
from protocols.errors import LogError
from stream_app.log.flushes import Output, TopicName
from stream_app.results.histograms import Histogram, Live
from stream_app.results.result_topics import HISTOGRAMS, LIVE, MOBILITY, ResultKey, ResultTopic

R = TypeVar("R", bound=BaseModel)


class PublishedResults(ABC):
    """The published results of any number of surveys."""

    @abstractmethod
    def messages(self, topic: TopicName) -> Iterator[Output]:
        """Every message of a topic, in the order of publication."""

    def read(self, topic: ResultTopic[R], survey: str) -> list[R]:
        """The results of a survey on one topic, by period."""
        return [topic.model.model_validate_json(value) for value in self.values(topic, survey).values()]

    def values(self, topic: ResultTopic[Any], survey: str | None = None) -> dict[ResultKey, bytes]:
        """The value that holds for each key, as published, in the order of the keys; of one survey or of all.

        A crash may repeat a record. Where the first one holds, a repetition must have the same bytes.
        """
        found: dict[ResultKey, bytes] = {}
        for message in self.messages(topic.name):
            key = topic.decode_key(message.key)
            if survey not in (None, key.survey):
                continue
            if topic.keep == "newest":
                found[key] = message.value
            elif found.setdefault(key, message.value) != message.value:
                raise LogError(
                    f"topic {topic.name}, key {message.key.decode()}: published twice with different values",
                    "keep the topic as it is and report this: a final result must never change",
                )
        return dict(sorted(found.items(), key=itemgetter(0)))

    def histograms(self, survey: str) -> list[Histogram]:
        """The final histograms of a survey, by period."""
        return self.read(HISTOGRAMS, survey)

    def mobility(self, survey: str) -> list[MobilityReport]:
        """The mobility reports of a survey, by period."""
        return self.read(MOBILITY, survey)

    def live(self, survey: str) -> Live | None:
        """The newest published status of a survey."""
        return next(iter(self.read(LIVE, survey)), None)
