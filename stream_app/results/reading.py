"""Reading published results: the same for every store, which provides only the messages of a topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel

from protocols.errors import HearsayError, ResultsError
from protocols.survey import Survey
from stream_app.log.encoding import decode, digest, join
from stream_app.log.flushes import Output, TopicName
from stream_app.results.forecast_result import ForecastResult
from stream_app.results.histograms import Histogram, Live
from stream_app.results.mobility import MobilityResult
from stream_app.results.result_topics import (
    FORECASTS,
    HISTOGRAMS,
    LIVE,
    MOBILITY,
    RESULT_TOPICS,
    ResultKey,
    ResultTopic,
)

FOREIGN = "was it written by another version, or by something else than a worker?"

_TOPICS: dict[TopicName, ResultTopic[Any]] = {topic.name: topic for topic in RESULT_TOPICS}

K = TypeVar("K")
R = TypeVar("R", bound=BaseModel)


class _Versioned(BaseModel):
    """The part of a result that every version of every model has."""

    schema_version: int
    pieces: tuple[str, ...] = ()


class PublishedResults(ABC):
    """The published results of any number of surveys."""

    @abstractmethod
    def messages(self, topic: TopicName) -> Iterator[Output]:
        """Every message of a topic, in the order of publication."""

    def read(self, topic: ResultTopic[R], survey: str, since: int = 0) -> list[R]:
        """The results of a survey on one topic, by period, from one period on.

        A result that lacks a piece is not there yet, or no longer.
        """
        values, pieces = self._holding(topic, survey)
        read = (
            decode_result(topic, key, value, pieces.get(key, {}).values())
            for key, value in values.items()
            if key.period is None or key.period >= since
        )
        return [result for result in read if result is not None]

    def values(self, topic: ResultTopic[Any], survey: str | None = None) -> dict[ResultKey, bytes]:
        """Each result as published, in the order of the keys, of one survey or of all; large ones without columns."""
        return self._holding(topic, survey)[0]

    def _holding(
        self, topic: ResultTopic[Any], survey: str | None
    ) -> tuple[dict[ResultKey, bytes], dict[ResultKey, dict[int, bytes]]]:
        """The record that holds for each key, in the order of the keys, and the pieces of each.

        A crash may repeat a record. Where the first one holds, a repetition must have the same bytes.
        """
        results: dict[ResultKey, bytes] = {}
        pieces: dict[ResultKey, dict[int, bytes]] = {}
        for message in self.messages(topic.name):
            key, piece = _decode_key(topic, message.key)
            if survey not in (None, key.survey):
                continue
            if piece is None:
                _hold(topic, key, results, key, message.value)
            else:
                _hold(topic, key, pieces.setdefault(key, {}), piece, message.value)
        return dict(sorted(results.items(), key=itemgetter(0))), pieces

    def periods(self, survey: str) -> list[int]:
        """The periods that have a final result."""
        return [key.period for key in self.values(HISTOGRAMS, survey) if key.period is not None]

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


@dataclass(frozen=True)
class Come:
    """What has come since the last look: surveys, and messages with their place and their offset in it.

    A place is what has offsets of its own: a topic, or a data directory. `unread` are errors about records that are no
    surveys.
    """

    surveys: list[Survey] = field(default_factory=list)
    messages: list[tuple[int, int, Output]] = field(default_factory=list)
    unread: list[HearsayError] = field(default_factory=list)


class Followed(NamedTuple):
    """A result that is complete."""

    topic: ResultTopic[Any]
    key: ResultKey
    result: BaseModel


class Follower:
    """Reads the messages of result topics in the order of publication, those of one topic or of several in turn.

    It has the rules of `PublishedResults.read`, and keeps no results: of each only a digest, and pieces until they are
    joined (of results that are replaced, the newest ones).
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[TopicName, ResultKey], str] = {}
        self._pieces: defaultdict[tuple[TopicName, ResultKey], dict[int, bytes]] = defaultdict(dict)

    def apply(self, message: Output) -> Followed | None:
        """The result that a message completes. None: it is a piece or a repetition, lacks a piece, or is no result.

        Raises ResultsError if it cannot be read, or changes a final.
        """
        topic = _TOPICS.get(message.topic)
        if topic is None:
            return None
        key, piece = _decode_key(topic, message.key)
        place = topic.name, key
        if piece is not None:
            if topic.keep == "newest" or place not in self._seen:
                self._pieces[place][piece] = message.value
            return None
        name = digest(message.value)
        if self._seen.get(place) == name:
            return None
        if topic.keep == "first" and place in self._seen:
            raise _changed_final(topic, key)
        result = decode_result(topic, key, message.value, self._pieces.get(place, {}).values())
        if result is None:
            return None
        self._seen[place] = name
        if topic.keep == "first":
            self._pieces.pop(place, None)
        return Followed(topic, key, result)


def _hold(topic: ResultTopic[Any], key: ResultKey, held: dict[K, bytes], place: K, value: bytes) -> None:
    if topic.keep == "newest":
        held[place] = value
    elif held.setdefault(place, value) != value:
        raise _changed_final(topic, key)


def _changed_final(topic: ResultTopic[Any], key: ResultKey) -> ResultsError:
    """The error about a result of which two records differ, although the first holds."""
    return ResultsError(
        f"{_place(topic, key)}: published twice with different values",
        "keep the topic as it is and report this: a final result must never change",
    )


def _decode_key(topic: ResultTopic[Any], key: bytes) -> tuple[ResultKey, int | None]:
    try:
        return topic.decode_key(key)
    except ValueError:
        raise ResultsError(
            f"topic {topic.name}: a record has the key {key!r} instead of {topic.key}", FOREIGN
        ) from None


def decode_result(topic: ResultTopic[R], key: ResultKey, value: bytes, pieces: Iterable[bytes] = ()) -> R | None:
    """The result in a record and its pieces, if this program knows its version; None if a piece is missing."""
    try:
        tree = decode(value)
        versioned = _Versioned.model_validate(tree)
        if versioned.schema_version > topic.schema_version:
            raise ResultsError(
                f"{_place(topic, key)}: schema version {versioned.schema_version}; this program reads versions up to "
                f"{topic.schema_version}",
                "upgrade hearsay here to the version of the workers that published it",
            )
        if versioned.pieces:
            known = {digest(piece): piece for piece in pieces}
            if not known.keys() >= set(versioned.pieces):
                return None
            join(tree, [known[name] for name in versioned.pieces])
        return topic.model.model_validate(tree)
    except (ValueError, LookupError, TypeError) as error:
        raise ResultsError(f"{_place(topic, key)}: the record is not a {topic.kind} result: {error}", FOREIGN) from None


def _place(topic: ResultTopic[Any], key: ResultKey) -> str:
    return f"topic {topic.name}, key {key.encode().decode()}"
