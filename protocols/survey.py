"""A survey: everything devices and collectors must agree on, in one file.

Unknown keys are refused, and every rule that can be checked is checked at load. The fingerprint travels with each
report, so that a report made under other terms is refused instead of miscounted.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import ceil
from typing import Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from protocols.durations import Duration
from protocols.errors import SurveyError

Solution = Literal["smp", "spl", "rs+fd", "rs+rfd"]
MechanismName = Literal[
    "auto", "adp", "allomfree", "grr", "sue", "oue", "geometric", "l-grr", "l-sue", "l-osue", "l-oue", "l-soue",
    "l-geometric", "loloha", "dbitflip", "sue-z", "sue-r", "oue-z", "oue-r",
]  # fmt: skip
MAX_PERIOD = (1 << 32) - 1
MAX_EPS = 20.0  # e^20 is half a billion: beyond that a lie is no longer noise, and floats lose its digits
ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,127}$"
NOT_AGREED = {"title", "description", "groups", "role"}  # words about the survey, not its terms


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Span(_Model):
    """An ordered range of whole numbers, cut into steps."""

    first: int = 0
    last: int
    step: int = Field(1, ge=1, description="how many numbers share one value; 10 gives 0-9, 10-19, ...")

    def names(self) -> tuple[str, ...]:
        starts = range(self.first, self.last + 1, self.step)
        return tuple(str(s) if self.step == 1 else f"{s}-{min(s + self.step - 1, self.last)}" for s in starts)


class Attribute(_Model):
    """One question: what it is called, what can be answered, how the answer is protected."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,62}$", description="lower-case letters, digits and _")
    values: tuple[str, ...] = Field((), description="the possible answers, by name, in a fixed order")
    range: Span | None = Field(None, description="instead of values: an ordered range of whole numbers")
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="roll-ups: group name to values")
    role: Literal["plain", "area", "dwell", "transition"] = Field(
        "plain", description="what mobility reports take it for"
    )
    mechanism: MechanismName = Field("auto", description="auto chooses the smaller variance")
    parameter: int | None = Field(None, ge=1, description="loloha: hash range g; dbitflip: values held d")
    prior: dict[str, float] | None = Field(None, description="rs+rfd: what fakes are drawn from; value to share")

    @model_validator(mode="before")
    @classmethod
    def _name_the_range(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("range") and not data.get("values"):
            data = {**data, "values": Span.model_validate(data["range"]).names()}
        return data

    @field_validator("values", mode="before")
    @classmethod
    def _as_text(cls, values: Any) -> Any:
        return [str(v) if isinstance(v, int | float) and not isinstance(v, bool) else v for v in values]

    @model_validator(mode="after")
    def _check(self) -> Self:
        where = f"attribute {self.name!r}"
        if len(self.values) < 2:
            raise ValueError(f"{where} has {len(self.values)} value(s); give at least 2 (values, or a range)")
        twice = sorted({v for v in self.values if self.values.count(v) > 1})
        if twice:
            raise ValueError(f"{where} lists {twice[0]!r} twice; name each value once")
        if self.range is not None and self.values != self.range.names():
            raise ValueError(f"{where} has both values and a range; keep one")
        for group, members in self.groups.items():
            strange = [m for m in members if m not in self.values]
            if strange:
                raise ValueError(f"{where}: group {group!r} names {strange[0]!r}, which is not among the values")
        if self.prior is not None:
            self._check_prior(where, self.prior)
        return self

    def _check_prior(self, where: str, prior: dict[str, float]) -> None:
        if set(prior) != set(self.values):
            odd = sorted(set(prior) ^ set(self.values))[0]
            raise ValueError(f"{where}: the prior and the values disagree about {odd!r}; give every value one share")
        if min(prior.values()) <= 0:
            low = min(prior, key=lambda v: prior[v])
            raise ValueError(f"{where}: the prior of {low!r} is {prior[low]:g}; every share must be above 0")
        if abs(sum(prior.values()) - 1) > 1e-9:
            raise ValueError(f"{where}: the prior sums to {sum(prior.values()):.12g}; make it sum to 1")

    @property
    def k(self) -> int:
        return len(self.values)

    @property
    def ordered(self) -> bool:
        return self.range is not None


class Survey(_Model):
    """The terms of one collection."""

    id: str = Field(pattern=ID_PATTERN, description="lower-case letters, digits, . _ -")
    title: str = Field("", description="for people; not part of the fingerprint")
    description: str = Field("", description="for people; not part of the fingerprint")
    start: AwareDatetime = Field(description="when period 0 begins, with a time zone")
    period: Duration = Field(description="how long a period lasts: 15m, 1h, 1d, 1w")
    attributes: tuple[Attribute, ...] = Field(min_length=1)
    eps_inf: float | None = Field(None, gt=0, le=MAX_EPS, description="what all reports of one value may ever reveal")
    eps_1: float | None = Field(
        None, gt=0, le=MAX_EPS, description="what one report may reveal; left out: the memo is sent"
    )
    eps: float | None = Field(
        None, gt=0, le=MAX_EPS, description="instead: a fresh draw per report, no memo, costs add up"
    )
    solution: Solution = "smp"
    calibration: Literal["exact", "published"] = "exact"
    guarantee: Literal["tuple", "attribute", "published"] = Field("tuple", description="rs+fd: whose neighbour?")
    horizon: int = Field(1, ge=1, le=65535, description="longest window, in periods, with unique visitors")
    clock: Literal["wall", "source"] = Field("wall", description="who closes periods: time, or the simulation")
    grace: Duration = Field(timedelta(0), description="how long after its end a period still takes reports")
    minimum: int = Field(0, ge=0, description="results of fewer reports are suppressed")
    memo_cap: int | None = Field(None, ge=1, description="most values a device memoises per attribute")
    presence_epsilon: float | None = Field(None, gt=0, description="noise on published counts of devices")

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [a.name for a in self.attributes]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"attributes: {twice[0]!r} is declared twice; give each its own name")
        if {"token", "gap"} & set(names):
            raise ValueError("attributes: 'token' and 'gap' are columns of every report; choose another name")
        if self.period <= timedelta(0):
            raise ValueError("period: 0s; a period must last")
        self._check_budgets()
        self._check_solution()
        return self

    def _check_budgets(self) -> None:
        if (self.eps is None) == (self.eps_inf is None):
            raise ValueError(
                "budgets: give eps_inf (with eps_1 unless the memo is sent), or eps for one-shot; one of both"
            )
        if self.eps is not None and self.eps_1 is not None:
            raise ValueError("eps_1: belongs to eps_inf; a one-shot survey has only eps")
        if self.eps_inf is not None and self.eps_1 is not None and self.eps_1 >= self.eps_inf:
            raise ValueError(
                f"eps_1: {self.eps_1:g} must be below eps_inf = {self.eps_inf:g}; leave it out to send the memo"
            )
        if self.memo_cap is not None and self.eps is not None:
            raise ValueError("memo_cap: a one-shot survey memoises nothing; leave it out")

    def _check_solution(self) -> None:
        if self.solution != "smp" and len(self.attributes) < 2 and self.solution != "spl":
            raise ValueError(f"solution: {self.solution} hides one attribute among several; with one attribute use smp")
        for attribute in self.attributes:
            if self.solution == "rs+rfd" and attribute.prior is None:
                raise ValueError(f"attribute {attribute.name!r}: rs+rfd draws fakes from a prior; give one")
            if self.solution != "rs+rfd" and attribute.prior is not None:
                raise ValueError(
                    f"attribute {attribute.name!r}: only rs+rfd uses a prior; leave it out or change solution"
                )
        if not self.solution.startswith("rs") and self.guarantee != "tuple":
            raise ValueError(f"guarantee: {self.guarantee} means something for rs+fd and rs+rfd only; leave it out")

    @property
    def longitudinal(self) -> bool:
        """Whether devices memoise a first round."""
        return self.eps is None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the terms: 32 hexadecimal digits; words for people do not change it."""
        terms = _without(self.model_dump(mode="json"), NOT_AGREED)
        terms["start"] = self.start.astimezone(UTC).isoformat()
        canonical = json.dumps(terms, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:32]

    @property
    def ahead(self) -> int:
        """How far beyond the last closed period reports are taken: what grace keeps open, and two more."""
        return ceil(self.grace / self.period) + 2

    def bounds(self, period: int) -> tuple[datetime, datetime]:
        """When a period begins and ends."""
        begin = self.start + period * self.period
        return begin, begin + self.period

    def period_of(self, moment: datetime) -> int:
        """The period a moment belongs to; negative before the start."""
        return (moment - self.start) // self.period

    def attribute(self, name: str) -> Attribute:
        return self.attributes[self.index(name)]

    def index(self, name: str) -> int:
        """The place of an attribute, by name."""
        for place, attribute in enumerate(self.attributes):
            if attribute.name == name:
                return place
        known = ", ".join(a.name for a in self.attributes)
        raise SurveyError(f"survey {self.id!r} has no attribute {name!r}", f"it has {known}")


def _without(data: Any, keys: set[str]) -> Any:
    if isinstance(data, dict):
        return {k: _without(v, keys) for k, v in data.items() if k not in keys}
    if isinstance(data, list):
        return [_without(v, keys) for v in data]
    return data
