"""The model of a mobility report; JSON, Arrow, CSV, Parquet and the page are made from it.

All numbers belong to *windows*: runs of consecutive periods, of which a single period is the shortest. What is not
known, or not published, is null.

A report is published for each period, from counts alone. Fields "added by readers" depend on what is known later or
elsewhere. They are null (or false) in published records; `combining` and `changes` fill them in.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from analytics.estimation.estimates import Estimates

Kind = Literal["period", "hour", "day", "week", "cumulative"]
Suppression = Literal["minimum", "difference"]
Role = Literal["plain", "area", "dwell", "transition"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Quantity(_Model):
    """A number with its standard error and interval. An exact one has error 0 and an interval of one point."""

    value: float | None
    error: float | None = Field(description="standard error; null where nothing is known")
    low: float | None = Field(description="lower end of the interval; null where it has none")
    high: float | None = Field(description="upper end of the interval; null where it has none")


class Change(_Model):
    """A change in percent: (now / then - 1) * 100, with the interval of the ratio."""

    percent: Quantity
    against: str = Field(description="what it is compared with, in words")
    first: int = Field(description="first period of what it is compared with")
    last: int = Field(description="last period of what it is compared with")


class ValueReport(_Model):
    """The visitors with one value, or with one of a group of values."""

    value: str
    share: Quantity = Field(description="unbiased; may be negative, need not sum to 1")
    consistent: float | None = Field(None, description="the share in the consistent histogram; null for groups")
    consistent_low: float | None = Field(
        None, description="lower end of its interval; null unless the mechanism is ordered and counts have no noise"
    )
    consistent_high: float | None = Field(None, description="upper end of the same interval")
    people: Quantity = Field(description="the share times the visitors")
    smoothed: Quantity | None = Field(
        None,
        description="the share in a period, estimated with the help of earlier periods; null for longer windows and "
        "for the first period",
    )
    change: Change | None = Field(None, description="of people, since the previous comparable window; added by readers")
    baseline: Change | None = Field(None, description="of people, against the baseline; added by readers")
    truth: float | None = Field(None, description="real number of people, if a simulation knows it; added by readers")


class Place(_Model):
    """One place of a ranking."""

    place: int = Field(description="1 is the busiest")
    value: str
    people: Quantity
    probability: float = Field(description="probability that this place is right")


class Ranking(_Model):
    """The busiest areas, the busiest first."""

    places: tuple[Place, ...]
    probability: float = Field(description="probability that all these places are right")


class Dwell(_Model):
    """Dwell times. Quartiles, and the ends of their intervals, are values of the attribute."""

    unit: str = Field(description="of the mean; empty where values are not numbers or durations")
    mean: Quantity | None
    quartiles: tuple[str, str, str] | None
    low: tuple[str, str, str] | None
    high: tuple[str, str, str] | None


class Flow(_Model):
    """The visitors who went from one place to another."""

    origin: str
    destination: str
    people: Quantity


class AttributeReport(_Model):
    """The visitors of a window by one attribute."""

    name: str
    role: Role
    mechanism: str
    counted: Literal["value in the period", "first value in the window"]
    n: int | None = Field(description="reports that answered this attribute; null where suppressed")
    suppressed: Suppression | None
    values: tuple[ValueReport, ...] = ()
    groups: tuple[ValueReport, ...] = ()
    ranking: Ranking | None = None
    dwell: Dwell | None = None
    flows: tuple[Flow, ...] = ()


class Gaps(_Model):
    """Returning visitors by the time since their last visit. Rare gaps are published together."""

    shortest: int = Field(description="periods since the last visit, at least")
    longest: int = Field(description="periods since the last visit, at most")
    visitors: Quantity


class WindowReport(_Model):
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
    new: Quantity | None = Field(None, description="visitors whose last report, if any, is a horizon or more ago")
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
        description="late and lost reports of these periods, at most; added by readers; "
        "null where the survey has presence_epsilon",
    )
    presence_lost: bool = Field(
        False, description="presence records were lost, so devices may be counted twice; added by readers"
    )
    truth: int | None = Field(None, description="real number of visitors, if a simulation knows it; added by readers")
    attributes: tuple[AttributeReport, ...] = Field(
        (), description="none for windows of several periods where the survey has presence_epsilon"
    )

    def attribute(self, name: str) -> AttributeReport:
        return next(attribute for attribute in self.attributes if attribute.name == name)


class UniqueVisitors(_Model):
    """One cell of the triangle of all windows."""

    first: int
    last: int
    visitors: Quantity | None = Field(description="null where suppressed")


class MobilityReport(_Model):
    """Visitors, their answers, rankings, dwell times and flows: everything published about one or many periods."""

    schema_version: int = Field(1, description="of this shape; a reader refuses one that is newer than it knows")
    survey: str
    title: str
    fingerprint: str
    start: datetime
    period_seconds: int
    horizon: int = Field(description="the longest window, in periods")
    minimum: int
    confidence: float
    presence: Literal["exact", "noised"] = Field(description="whether counts of devices carry noise")
    presence_scale: float | None = Field(description="scale of the noise on reports by gap; null if exact")
    notes: tuple[str, ...] = Field(description="how to read the numbers")
    windows: tuple[WindowReport, ...]
    triangle: tuple[UniqueVisitors, ...]

    def window(self, first: int, last: int) -> WindowReport:
        return next(window for window in self.windows if (window.first, window.last) == (first, last))


PARTS = ("value", "error", "low", "high")  # fields of Quantity, and of Estimates
_QUANTITIES = TypeAdapter(list[Quantity])  # many at once: several times as fast as one by one


def quantity(measured: Estimates) -> Quantity:
    """One estimated number as it is published.

    >>> quantity(Estimates(*map(np.array, (0.5, np.inf, 0.0, 1.0)))).error is None
    True
    """
    return quantities(measured[None])[0]


def quantities(measured: Estimates) -> list[Quantity]:
    """A row of estimated numbers as they are published."""
    parts = np.stack([getattr(measured, part) for part in PARTS], axis=1)
    numbers = parts.astype(object)
    numbers[~np.isfinite(parts)] = None
    return _QUANTITIES.validate_python([dict(zip(PARTS, row, strict=True)) for row in numbers.tolist()])


def measured(numbers: Sequence[Quantity | None]) -> Estimates:
    """Published numbers as arrays again.

    >>> measured([Quantity(value=3, error=1, low=1, high=5), None]).value.tolist()
    [3.0, nan]
    """
    columns = [[getattr(number, part, None) for number in numbers] for part in PARTS]
    return Estimates(*(np.array(column, dtype=np.float64) for column in columns))
