"""The table of result topics: one row for each kind of result that is published.

Names and configuration of the topics, JSON Schemas, content types and readers all follow from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel

from protocols.wire import CONTENT_TYPE_HEADER
from stream_app.log.encoding import encode
from stream_app.log.flushes import Output, TopicName
from stream_app.log.limits import VALUE_BYTES
from stream_app.results.forecast_result import ForecastResult
from stream_app.results.histograms import Histogram, Live
from stream_app.results.mobility import MobilityResult

PIECE = "application/vnd.hearsay.piece+json"
CONTENT_ENCODING_HEADER = "content-encoding"

R_co = TypeVar("R_co", bound=BaseModel, covariant=True)


class ResultKey(NamedTuple):
    """What a result describes: one period of a survey, or (without a period) the survey.

    >>> ResultKey("buttons", 12).encode(), ResultKey("buttons").encode()
    (b'buttons/12', b'buttons')
    """

    survey: str
    period: int | None = None

    def encode(self) -> bytes:
        return (self.survey if self.period is None else f"{self.survey}/{self.period}").encode()


@dataclass(frozen=True)
class ResultTopic(Generic[R_co]):
    """One row of the table. The model's first field is `schema_version`, whose default is the version written."""

    name: TopicName  # of the topic, without the prefix
    kind: str  # one result of this topic, in the singular: names its schema and its content type
    model: type[R_co]
    key: Literal["survey/period", "survey"]
    keep: Literal["first", "newest"]  # the record that holds when a key has several

    @property
    def schema_version(self) -> int:
        """The newest version of the model: the one that is written, and the last one that can be read."""
        return int(self.model.model_fields["schema_version"].default)

    @property
    def content_type(self) -> str:
        """What the header of each record says.

        >>> HISTOGRAMS.content_type
        'application/vnd.hearsay.histogram+json'
        """
        return f"application/vnd.hearsay.{self.kind}+json"

    def messages(self, key: ResultKey, result: BaseModel, limit: int = VALUE_BYTES) -> list[Output]:
        """A result as it is published: its pieces, if it is too large for one record, and then the result."""
        name, (pieces, whole) = key.encode(), encode(result, limit)
        messages = [Output(self.name, b"%s#%d" % (name, at), piece, _headers(PIECE)) for at, piece in enumerate(pieces)]
        return [*messages, Output(self.name, name, whole, _headers(self.content_type))]

    def decode_key(self, key: bytes) -> tuple[ResultKey, int | None]:
        """The result that a record belongs to, and which of its pieces it is, if it is one.

        >>> HISTOGRAMS.decode_key(b"buttons/12")
        (ResultKey(survey='buttons', period=12), None)
        >>> LIVE.decode_key(b"buttons#3")
        (ResultKey(survey='buttons', period=None), 3)
        """
        name, cut, place = key.decode().partition("#")
        piece = int(place) if cut else None
        if self.key == "survey":
            return ResultKey(name), piece
        survey, _, period = name.rpartition("/")
        return ResultKey(survey, int(period)), piece


def is_piece(output: Output) -> bool:
    """Whether a message is a piece of a result, which must be published before it."""
    return output.headers == _headers(PIECE)


def _headers(content_type: str) -> tuple[tuple[str, bytes], ...]:
    return (CONTENT_TYPE_HEADER, content_type.encode()), (CONTENT_ENCODING_HEADER, b"gzip")


RESULT_TOPICS: tuple[ResultTopic[Any], ...] = (
    HISTOGRAMS := ResultTopic(TopicName("histograms"), "histogram", Histogram, key="survey/period", keep="first"),
    MOBILITY := ResultTopic(TopicName("mobility"), "mobility", MobilityResult, key="survey/period", keep="first"),
    FORECASTS := ResultTopic(TopicName("forecasts"), "forecast", ForecastResult, key="survey/period", keep="first"),
    LIVE := ResultTopic(TopicName("live"), "live", Live, key="survey", keep="newest"),
)
