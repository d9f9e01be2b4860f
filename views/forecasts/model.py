"""Published forecasts: made from finals, on a topic of their own."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from analytics.columns import Column, Columns, ResultModel
from views.view import Pieces

Kind = Literal["visitors", "values", "groups"]


class Intervals(ResultModel):
    """Lower and upper ends: a column for each period ahead."""

    low: Columns
    high: Columns


class ForecastTable(ResultModel):
    """Forecasts of all visitors, of the values of an attribute, or of its groups.

    There is one column for each period ahead, with a number for each name: null where a period ahead will probably be
    suppressed, and where too little is known of a value.
    """

    kind: Kind
    attribute: str | None = Field(description="null: all visitors")
    names: tuple[str, ...] = Field(description="the values or groups; for all visitors the word `visitors`")
    suppressed: Literal["minimum"] | None = Field(description="why nothing is forecast; null if something is")
    mean: Columns | None = Field(None, description="people in each of the next periods; unbiased, may be negative")
    truth_80: Intervals | None = Field(None, description="80 % intervals of the truth")
    truth_95: Intervals | None = Field(None, description="95 % intervals of the truth")
    publication_80: Intervals | None = Field(None, description="80 % intervals of what will be published")
    publication_95: Intervals | None = Field(None, description="95 % intervals of what will be published")
    stretch: Column | None = Field(None, description="by how much calibration widened the model's standard deviations")
    unexpected: tuple[str, ...] = Field(
        (), description="the names whose newest publication left the 99 % interval of its forecast"
    )


class ForecastResult(ResultModel):
    """The forecast that was made after one period of one survey."""

    schema_version: int = Field(2, description="of this shape; a reader refuses one that is newer than it knows")
    survey: str
    fingerprint: str
    period: int = Field(description="the last period that the forecast knows; the first one ahead follows it")
    begin: datetime = Field(description="when the first period ahead begins, in local time")
    period_seconds: int = Field(description="with a time zone, local days may be longer or shorter")
    model: str
    seasons: tuple[int, ...]
    fitted_after: int = Field(description="the last period that the parameters were fitted to")
    trained: int = Field(description="how many periods they were fitted to")
    tables: tuple[ForecastTable, ...]
    pieces: Pieces = ()

    def table(self, kind: Kind, attribute: str | None = None) -> ForecastTable:
        return next(table for table in self.tables if (table.kind, table.attribute) == (kind, attribute))
