"""Published forecasts: made from finals, on a topic of their own."""

from datetime import datetime
from typing import Literal

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
    attribute: str | None
    names: tuple[str, ...]
    suppressed: Literal["minimum"] | None
    mean: Columns | None = None
    truth_80: Intervals | None = None
    truth_95: Intervals | None = None
    publication_80: Intervals | None = None
    publication_95: Intervals | None = None
    stretch: Column | None = None
    unexpected: tuple[str, ...] = ()


class ForecastResult(ResultModel):
    """The forecast that was made after one period of one survey."""

    schema_version: int = 2
    survey: str
    fingerprint: str
    period: int
    begin: datetime
    period_seconds: int
    model: str
    seasons: tuple[int, ...]
    fitted_after: int
    trained: int
    tables: tuple[ForecastTable, ...]
    pieces: Pieces = ()
