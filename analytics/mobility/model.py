"""The model of a mobility report; JSON, Arrow, CSV, Parquet and the page are made from it.

All numbers belong to *windows*: runs of consecutive periods, of which a single period is the shortest. What is not
known, or not published, is null. Numbers by value are columns; `attributes` lists the names of the values, once.

A report is published for each period, from counts alone. Fields "added by readers" depend on what is known later or
elsewhere. They are null (or false) in published records; `combining` fills them in.
"""

from datetime import datetime, timedelta
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np
from pydantic import Field, model_validator

from analytics.columns import Column, ResultModel
from analytics.estimation.estimates import Estimates, product
from analytics.integrity.verdict import Integrity
from protocols.survey import Calendar, TimeZone

Unfinished = Literal["day so far", "week so far", "month so far", "year so far", "ever"]
Kind = Literal["period", "hour", "day", "week", "month", "year", "rolling", "cumulative", Unfinished]
Suppression = Literal["minimum", "difference"]  # the latter in reports of release 0.2
Counted = Literal["value in the period", "first value in the window", "all reports in the window"]
VISITS: Counted = "all reports in the window"
Role = Literal["plain", "area", "dwell", "amount", "transition", "cross"]


class Quantity(ResultModel):
    """A number with its standard error and interval. An exact one has error 0 and an interval of one point."""

    value: float | None
    error: float | None
    low: float | None
    high: float | None


class Quantities(ResultModel):
    """A row of numbers with their standard errors and intervals: a column each, with an entry for every value."""

    value: Column
    error: Column
    low: Column
    high: Column

    def at(self, place: int) -> Quantity:
        """One of the numbers."""
        return quantity(measured(self)[place])


class Change(ResultModel):
    """A change in percent: (now / then - 1) * 100, with the interval of the ratio."""

    percent: Quantity
    against: str
    first: int
    last: int


class Changes(ResultModel):
    """The changes of a row of numbers."""

    percent: Quantities
    against: str
    first: int
    last: int


class Shares(ResultModel):
    """The visitors with each value of an attribute, or with one of each group of values.

    Columns have an entry for each name that the report lists for the attribute, in its order.
    """

    share: Quantities
    consistent: Column | None = None
    consistent_low: Column | None = None
    consistent_high: Column | None = None
    adjusted: Column | None = None
    adjusted_error: Column | None = None
    adjusted_low: Column | None = None
    adjusted_high: Column | None = None
    nowcast: Quantities | None = None
    change: Changes | None = None
    baseline: Changes | None = None
    truth: Column | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_smoothed(cls, given: Any) -> Any:
        """Records up to version 6 have smoothed shares: nowcasts, which replace them, are results of their own."""
        return {name: part for name, part in given.items() if name != "smoothed"} if isinstance(given, dict) else given

    def people(self, visitors: Quantity) -> Quantities:
        """The shares as numbers of people: times the window's visitors."""
        return quantities(product(measured(self.share), measured(visitors)))


class Place(ResultModel):
    """One place of a ranking."""

    place: int
    value: str
    people: Quantity
    probability: float


class Ranking(ResultModel):
    """The busiest areas, the busiest first."""

    places: tuple[Place, ...]
    probability: float


class Dwell(ResultModel):
    """Dwell times. Quartiles, and the ends of their intervals, are values of the attribute."""

    unit: str
    mean: Quantity | None
    quartiles: tuple[str, str, str] | None
    low: tuple[str, str, str] | None
    high: tuple[str, str, str] | None


FULL = 0.02
"""The share of full sets from which on results say that sets are larger than `several`, if its interval is above."""


class AmountQuantile(ResultModel):
    """The number that so large a share of the visitors does not exceed."""

    at: float
    value: float
    low: float
    high: float


class Amount(ResultModel):
    """A number that visitors have. Each counts with the middle of its value of the attribute.

    Of thresholds, values of the attribute are slots of the range, and shares those of the visitors above a slot: above
    a number in it that is drawn evenly. The mean is not made of these shares, and quantiles lie between slots.
    """

    mean: Quantity
    sum: Quantity
    off: float
    quantiles: tuple[AmountQuantile, ...]
    top: Quantity | None = Field(None, exclude_if=lambda top: top is None)


class Trips(ResultModel):
    """The visitors by the place where their transition began, and by that where it ended; with those who stayed.

    Columns have an entry for each place that the report lists for the attribute. They are sums of the shares of its
    values, unbiased as these.
    """

    began: Quantities
    ended: Quantities


class Axis(ResultModel):
    """One of the two attributes of a cross."""

    name: str
    values: tuple[str, ...]
    groups: tuple[str, ...] = ()


class Sizes(ResultModel):
    """How many values devices have, where an attribute is one of sets."""

    share: Quantities
    mean: Quantity
    full: Quantity

    @property
    def overflow(self) -> bool:
        """Whether so many sets are full that larger ones matter."""
        return self.full.low is not None and self.full.low > FULL


class AskedAttribute(ResultModel):
    """An attribute as it was asked. Columns about it have an entry for each of its values, or of its groups."""

    name: str
    role: Role
    mechanism: str
    values: tuple[str, ...]
    several: int | None = Field(None, exclude_if=lambda several: several is None)
    groups: tuple[str, ...] = ()
    places: tuple[str, ...] = Field((), exclude_if=lambda places: not places)
    axes: tuple[Axis, ...] = ()


class AttributeReport(ResultModel):
    """The visitors of a window by one attribute."""

    name: str
    counted: Counted
    periods: int | None = Field(None, exclude_if=lambda periods: periods is None)
    n: int | None
    suppressed: Suppression | None
    values: Shares | None = None
    groups: Shares | None = None
    sizes: Sizes | None = Field(None, exclude_if=lambda sizes: sizes is None)
    ranking: Ranking | None = None
    dwell: Dwell | None = None
    amount: Amount | None = Field(None, exclude_if=lambda amount: amount is None)
    trips: Trips | None = Field(None, exclude_if=lambda trips: trips is None)


class Gaps(ResultModel):
    """Returning visitors by the time since their last visit. Rare gaps are published together."""

    shortest: int
    longest: int
    visitors: Quantity


class WindowReport(ResultModel):
    """Everything published about one window."""

    first: int
    last: int
    begin: datetime
    end: datetime
    kind: Kind
    suppressed: Suppression | None
    visitors: Quantity | None = None
    new: Quantity | None = None
    returning: Quantity | None = None
    visits: Quantity | None = Field(None, exclude_if=lambda visits: visits is None)
    gaps: tuple[Gaps, ...] = ()
    change: Change | None = None
    baseline: Change | None = None
    shortfall: int | None = None
    presence_lost: bool = False
    truth: int | None = None
    attributes: tuple[AttributeReport, ...] = ()
    integrity: Integrity | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_unbiased(cls, given: Any) -> Any:
        """Reports of release 0.2 with noise had numbers beside those that were made to agree."""
        if not isinstance(given, dict):
            return given
        return {name: part for name, part in given.items() if not name.startswith("unbiased_")}

    def counted_by(self, part: AttributeReport) -> Quantity | None:
        """What shares of an attribute are shares of: different devices, or visits."""
        return self.visits if part.counted == VISITS else self.visitors

    @property
    def open(self) -> bool:
        """Whether it is a calendar unit that goes on after the last period."""
        return self.kind in get_args(Unfinished)

    @property
    def unit(self) -> str:
        """Its kind, whether it goes on or not."""
        return self.kind.removesuffix(" so far")

    def attribute(self, name: str) -> AttributeReport:
        return next(attribute for attribute in self.attributes if attribute.name == name)


class UniqueVisitors(ResultModel):
    """One cell of the triangle of all windows."""

    first: int
    last: int
    visitors: Quantity | None


class MobilityReport(ResultModel):
    """Visitors, their answers, rankings, dwell times and flows: everything published about one or many periods."""

    schema_version: int = 7
    survey: str
    title: str
    fingerprint: str
    start: datetime
    period_seconds: int
    time_zone: TimeZone | None = None
    horizon: int
    minimum: int
    confidence: float
    presence: Literal["exact", "noised"]
    presence_scale: float | None
    notes: tuple[str, ...]
    attributes: tuple[AskedAttribute, ...]
    windows: tuple[WindowReport, ...]
    triangle: tuple[UniqueVisitors, ...]

    @property
    def calendar(self) -> Calendar:
        """When its periods begin and end."""
        return Calendar(self.start, timedelta(seconds=self.period_seconds), self.time_zone)

    def window(self, first: int, last: int) -> WindowReport:
        return next(window for window in self.windows if (window.first, window.last) == (first, last))

    def asked(self, name: str) -> AskedAttribute:
        return next(attribute for attribute in self.attributes if attribute.name == name)


PARTS = ("value", "error", "low", "high")  # fields of Quantity, Quantities and Estimates


def quantity(measured: Estimates) -> Quantity:
    """One estimated number as it is published.

    >>> quantity(Estimates(*map(np.array, (0.5, np.inf, 0.0, 1.0)))).error is None
    True
    """
    return each_quantity(Estimates(*(np.reshape(getattr(measured, part), 1) for part in PARTS)))[0]


def each_quantity(measured: Estimates) -> list[Quantity]:
    """Each of a row of estimated numbers, as one of them is published."""
    return [
        Quantity(**{part: number if isfinite(number) else None for part, number in zip(PARTS, numbers, strict=True)})
        for numbers in zip(*(getattr(measured, part).tolist() for part in PARTS), strict=True)
    ]


def quantities(measured: Estimates) -> Quantities:
    """A row of estimated numbers as they are published."""
    return Quantities(**{part: getattr(measured, part) for part in PARTS})


def measured(published: Quantity | Quantities) -> Estimates:
    """A published number, or a row of them, as an estimate again.

    >>> measured(Quantity(value=3, error=None, low=1, high=5)).error.tolist()
    nan
    """
    return Estimates(*(np.array(getattr(published, part), dtype=np.float64) for part in PARTS))
