"""Published forecasts: made from finals, on a topic of their own."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from stream_app.results.histograms import Pieces

Numbers = tuple[float | None, ...]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Interval(_Result):
    """Lower and upper ends, one of each for every period ahead."""

    low: Numbers
    high: Numbers


class CellForecast(_Result):
    """The forecast of the visitors, of a value, or of a group of values. A number is null where it is suppressed."""

    attribute: str | None = Field(description="null: all visitors")
    value: str
    group: bool
    suppressed: Literal["minimum"] | None = Field(description="why nothing is forecast; null if something is")
    mean: Numbers = Field((), description="people in each of the next periods; unbiased, may be negative")
    truth_80: Interval | None = Field(None, description="80 % intervals of the truth")
    truth_95: Interval | None = Field(None, description="95 % intervals of the truth")
    publication_80: Interval | None = Field(None, description="80 % intervals of what will be published")
    publication_95: Interval | None = Field(None, description="95 % intervals of what will be published")
    stretch: float | None = Field(None, description="by how much calibration widened the model's standard deviation")
    unexpected: bool = Field(False, description="the newest publication left the 99 % interval of its forecast")


class ForecastResult(_Result):
    """The forecast that was made after one period of one survey."""

    schema_version: int = Field(1, description="of this shape; a reader refuses one that is newer than it knows")
    survey: str
    fingerprint: str
    period: int = Field(description="the last period that the forecast knows; the first one ahead follows it")
    begin: datetime = Field(description="when the first period ahead begins, in local time")
    period_seconds: int = Field(description="with a time zone, local days may be longer or shorter")
    model: str
    seasons: tuple[int, ...]
    fitted_after: int = Field(description="the last period that the parameters were fitted to")
    trained: int = Field(description="how many periods they were fitted to")
    cells: tuple[CellForecast, ...]
    pieces: Pieces = ()
