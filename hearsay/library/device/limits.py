"""What a device may reveal, whatever a survey asks (docs/device-protocol.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import inf, isfinite

from protocols.errors import DeviceError, SettingsError
from protocols.scheme import Scheme

ROUNDING = 1 + 1e-9
NEAR = 500.0
"""Metres: places are protected by nearness, so what a survey reveals about two places is counted at this distance."""


@dataclass(frozen=True)
class Limits:
    """The most that a device reveals, as largest log-ratios.

    `report` is for one report, `life` for all reports of one survey for ever, `total` for all surveys together.
    """

    report: float = 2.0
    life: float = 30.0
    total: float = 60.0

    def __post_init__(self) -> None:
        for each in fields(self):
            limit = getattr(self, each.name)
            if not (isfinite(limit) and limit > 0):
                raise SettingsError(f"limits: {each.name} is {limit}", "give a finite number above 0")

    def check(self, survey: str, spending: Spending, others: Iterable[Spending]) -> None:
        """Refuse a survey whose losses exceed a limit. Nothing here depends on a person's values."""
        total = spending.spent + sum(other.spent for other in others)
        for name, what, loss in (
            ("report", "one report", spending.report),
            ("life", "all its reports", spending.spent),
            ("total", "it and all other surveys of this device", total),
        ):
            limit = getattr(self, name)
            if not loss <= limit * ROUNDING:
                raise DeviceError(
                    "limit",
                    f"survey {survey!r}: {what} may reveal {loss:.4g}, more than the limit of {limit:g} ({name})",
                    "do not answer it; or raise the limit, if the person agrees",
                )


@dataclass(frozen=True)
class Spending:
    """What a survey costs: one report, and all memos for ever (None where nothing is memoised and answers add up)."""

    report: float
    life: float | None
    answers: int = 0

    @classmethod
    def of(cls, scheme: Scheme) -> Spending:
        """Of places: what is revealed about two that are `NEAR` metres apart, for each cell that may be memoised."""
        if any(question.attribute.placed for question in scheme.questions):
            return cls._with_places(scheme)
        report, life = scheme.guarantees.per_report.whole, scheme.guarantees.renaming
        assert report is not None, "one report has a bound"
        return cls(report, None if life is None else life.whole)

    @classmethod
    def _with_places(cls, scheme: Scheme) -> Spending:
        """Places are asked with smp: a device answers one attribute, so the largest loss counts."""
        promise, report, life = scheme.guarantees, 0.0, 0.0
        per_report, for_ever = promise.per_attribute(1), promise.per_attribute(inf)
        for question, one, ever, cells in zip(scheme.questions, per_report, for_ever, promise.values, strict=True):
            grid = question.attribute.grid
            near = NEAR / grid.diameter if grid is not None and question.attribute.placed else 1.0
            report, life = max(report, one * near), max(life, ever * near * cells)
        return cls(report, life if scheme.survey.longitudinal else None)

    @property
    def spent(self) -> float:
        """Memos are counted when a survey is joined, all that there can ever be; fresh noise for each answer."""
        return self.answers * self.report if self.life is None else self.life
