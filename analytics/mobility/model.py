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
Kind = Literal["period", "hour", "day", "week", "month", "year", "cumulative", Unfinished]
Suppression = Literal["minimum", "difference"]
Role = Literal["plain", "area", "dwell", "amount", "transition", "cross"]


class Quantity(ResultModel):
    """A number with its standard error and interval. An exact one has error 0 and an interval of one point."""

    value: float | None
    error: float | None = Field(description="standard error; null where nothing is known")
    low: float | None = Field(description="lower end of the interval; null where it has none")
    high: float | None = Field(description="upper end of the interval; null where it has none")


class Quantities(ResultModel):
    """A row of numbers with their standard errors and intervals: a column each, with an entry for every value."""

    value: Column
    error: Column = Field(description="standard errors; null where nothing is known")
    low: Column = Field(description="lower ends of the intervals; null where there is none")
    high: Column = Field(description="upper ends of the intervals; null where there is none")

    @property
    def estimates(self) -> Estimates:
        return Estimates(self.value, self.error, self.low, self.high)

    def at(self, place: int) -> Quantity:
        """One of the numbers."""
        return quantity(self.estimates[place])


class Change(ResultModel):
    """A change in percent: (now / then - 1) * 100, with the interval of the ratio."""

    percent: Quantity
    against: str = Field(description="what it is compared with, in words")
    first: int = Field(description="first period of what it is compared with")
    last: int = Field(description="last period of what it is compared with")


class Changes(ResultModel):
    """The changes of a row of numbers."""

    percent: Quantities
    against: str = Field(description="what they are compared with, in words")
    first: int = Field(description="first period of what they are compared with")
    last: int = Field(description="last period of what they are compared with")


class Shares(ResultModel):
    """The visitors with each value of an attribute, or with one of each group of values.

    Columns have an entry for each name that the report lists for the attribute, in its order.
    """

    share: Quantities = Field(description="unbiased; may be negative, need not sum to 1")
    consistent: Column | None = Field(None, description="shares of the consistent histogram; null for groups")
    consistent_low: Column | None = Field(
        None,
        description="lower ends of its intervals; null unless it is of a cross, or the mechanism is ordered and counts "
        "have no noise",
    )
    consistent_high: Column | None = Field(None, description="upper ends of the same intervals")
    adjusted: Column | None = Field(
        None,
        description="of a cross: shares made to agree with those of both attributes by least squares; unbiased, with "
        "smaller errors; null otherwise",
    )
    adjusted_error: Column | None = Field(None, description="their standard errors")
    adjusted_low: Column | None = Field(None, description="lower ends of their 95 % intervals")
    adjusted_high: Column | None = Field(None, description="upper ends of their 95 % intervals")
    nowcast: Quantities | None = Field(
        None,
        description="the shares in a period, estimated with the help of earlier periods; null for longer windows; "
        "added by readers",
    )
    change: Changes | None = Field(
        None, description="of people, since the previous comparable window; added by readers"
    )
    baseline: Changes | None = Field(None, description="of people, against the baseline; added by readers")
    truth: Column | None = Field(
        None, description="real numbers of people, if a simulation knows them; added by readers"
    )

    @model_validator(mode="before")
    @classmethod
    def _without_smoothed(cls, given: Any) -> Any:
        """Records up to version 6 have smoothed shares: nowcasts, which replace them, are results of their own."""
        return {name: part for name, part in given.items() if name != "smoothed"} if isinstance(given, dict) else given

    def people(self, visitors: Quantity) -> Quantities:
        """The shares as numbers of people: times the window's visitors."""
        return quantities(product(self.share.estimates, measured(visitors)))


class Place(ResultModel):
    """One place of a ranking."""

    place: int = Field(description="1 is the busiest")
    value: str
    people: Quantity
    probability: float = Field(description="probability that this place is right")


class Ranking(ResultModel):
    """The busiest areas, the busiest first."""

    places: tuple[Place, ...]
    probability: float = Field(description="probability that all these places are right")


class Dwell(ResultModel):
    """Dwell times. Quartiles, and the ends of their intervals, are values of the attribute."""

    unit: str = Field(description="of the mean; empty where values are not numbers or durations")
    mean: Quantity | None
    quartiles: tuple[str, str, str] | None
    low: tuple[str, str, str] | None
    high: tuple[str, str, str] | None


FULL = 0.02
"""The share of full sets from which on results say that sets are larger than `several`, if its interval is above."""


class AmountQuantile(ResultModel):
    """The number that so large a share of the visitors does not exceed."""

    at: float = Field(description="the share; 0.5 is the median")
    value: float = Field(description="the middle of the value of the attribute in which it lies")
    low: float = Field(description="lower end of the interval: where its first value begins")
    high: float = Field(description="upper end of the interval: where its last value ends")


class Amount(ResultModel):
    """A number that visitors have. Each counts with the middle of its value of the attribute.

    Of thresholds, values of the attribute are slots of the range, and shares those of the visitors above a slot: above
    a number in it that is drawn evenly. The mean is not made of these shares, and quantiles lie between slots.
    """

    mean: Quantity
    sum: Quantity = Field(description="the mean times the visitors of the window")
    off: float = Field(description="by how much the mean may be off besides: half the width of the widest value")
    quantiles: tuple[AmountQuantile, ...]
    top: Quantity | None = Field(
        None,
        exclude_if=lambda top: top is None,
        description="of thresholds: the share of numbers above the last slot; if it is large, numbers may be cut",
    )


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
    groups: tuple[str, ...] = Field((), description="the names of its groups")


class Sizes(ResultModel):
    """How many values devices have, where an attribute is one of sets."""

    share: Quantities = Field(
        description="the shares of devices with 0, 1 .. values, the last of those with as many as are counted, or more"
    )
    mean: Quantity = Field(
        description="how many values a device has on average, at most as many as are counted of each"
    )
    full: Quantity = Field(
        description="the last share again: sets that are larger still are counted too low, and are a part of these"
    )

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
    several: int | None = Field(
        None,
        exclude_if=lambda several: several is None,
        description="of sets: how many values of a device are counted. Shares are those of devices with a value, which "
        "do not sum to 1; those of groups are mean numbers of their values",
    )
    groups: tuple[str, ...] = Field((), description="the names of groups of values")
    places: tuple[str, ...] = Field(
        (), exclude_if=lambda places: not places, description="of transitions: where they begin and end"
    )
    axes: tuple[Axis, ...] = Field(
        (),
        description="of a cross: its two attributes. Values are all pairs, row by row: the first attribute's value "
        "changes last. So are groups: first those of a group and a value, then of a value and a group, then of two "
        "groups",
    )


class AttributeReport(ResultModel):
    """The visitors of a window by one attribute."""

    name: str
    counted: Literal["value in the period", "first value in the window"]
    n: int | None = Field(description="reports that answered this attribute; null where suppressed")
    suppressed: Suppression | None
    values: Shares | None = Field(None, description="null where nothing is known or published")
    groups: Shares | None = None
    sizes: Sizes | None = Field(None, exclude_if=lambda sizes: sizes is None, description="of sets only")
    ranking: Ranking | None = None
    dwell: Dwell | None = None
    amount: Amount | None = Field(None, exclude_if=lambda amount: amount is None, description="of amounts only")
    trips: Trips | None = Field(None, exclude_if=lambda trips: trips is None, description="of transitions only")


class Gaps(ResultModel):
    """Returning visitors by the time since their last visit. Rare gaps are published together."""

    shortest: int = Field(description="periods since the last visit, at least")
    longest: int = Field(description="periods since the last visit, at most")
    visitors: Quantity


class WindowReport(ResultModel):
    """Everything published about one window."""

    first: int = Field(description="first period")
    last: int = Field(description="last period")
    begin: datetime
    end: datetime
    kind: Kind
    suppressed: Suppression | None = Field(description="why nothing is published; null if something is")
    visitors: Quantity | None = Field(
        None, description="different devices that reported in the window; with presence_epsilon made to agree"
    )
    new: Quantity | None = Field(
        None,
        description="visitors whose last report, if any, is a horizon or more ago; in a survey with visitors those who "
        "never reported before",
    )
    returning: Quantity | None = None
    gaps: tuple[Gaps, ...] = ()
    unbiased_visitors: Quantity | None = Field(
        None,
        description="the plain sum of noised counts, may be negative; null unless the survey has presence_epsilon",
    )
    unbiased_new: Quantity | None = Field(None, description="the same for new visitors")
    unbiased_returning: Quantity | None = Field(None, description="the same for returning visitors")
    change: Change | None = Field(
        None, description="of visitors, since the previous comparable window; added by readers"
    )
    baseline: Change | None = Field(None, description="of visitors, against the baseline; added by readers")
    shortfall: int | None = Field(
        None,
        description="late and lost reports of these periods, at most; added by readers, of calendar units late ones "
        "are known before; null where the survey has presence_epsilon",
    )
    presence_lost: bool = Field(
        False, description="presence records were lost, so devices may be counted twice; added by readers"
    )
    truth: int | None = Field(None, description="real number of visitors, if a simulation knows it; added by readers")
    attributes: tuple[AttributeReport, ...] = Field(
        (), description="none for windows of several periods where the survey has presence_epsilon or central"
    )
    integrity: Integrity | None = Field(
        None,
        description="of a single period: whether its counts can have come from honest devices; null where suppressed, "
        "and where the survey has presence_epsilon",
    )

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
    visitors: Quantity | None = Field(description="null where suppressed")


class MobilityReport(ResultModel):
    """Visitors, their answers, rankings, dwell times and flows: everything published about one or many periods."""

    schema_version: int = Field(7, description="of this shape; a reader refuses one that is newer than it knows")
    survey: str
    title: str
    fingerprint: str
    start: datetime
    period_seconds: int = Field(description="with a time zone, local days may be longer or shorter")
    time_zone: TimeZone | None = Field(None, description="the zone of days and hours; null: that of `start`")
    horizon: int = Field(description="the longest window, in periods")
    minimum: int
    confidence: float
    presence: Literal["exact", "noised"] = Field(description="whether counts of devices carry noise")
    presence_scale: float | None = Field(description="scale of the noise on reports by gap; null if exact")
    notes: tuple[str, ...] = Field(description="how to read the numbers")
    attributes: tuple[AskedAttribute, ...] = Field(description="what was asked: the names of values and groups")
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


def ends_of(transition: str) -> tuple[str, str] | None:
    """Where a transition begins and ends; None if its name does not say both.

    >>> ends_of("north > south"), ends_of("abroad")
    (('north', 'south'), None)
    """
    origin, *rest = (place.strip() for place in transition.split(">"))
    return (origin, rest[0]) if len(rest) == 1 else None


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


def measured(published: Quantity) -> Estimates:
    """A published number as an estimate again.

    >>> measured(Quantity(value=3, error=None, low=1, high=5)).error.tolist()
    nan
    """
    return Estimates(*(np.array(getattr(published, part), dtype=np.float64) for part in PARTS))
