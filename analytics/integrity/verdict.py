"""The verdict on a period: all checks, corrected for looking at every period for ever (docs/audit.md, 9).

A check's `adjusted` p-value is its own times the factors of its period and of the number of checks. The flow of gaps is
exact: a device reports once in a period, so each report has at most one successor. There cannot be more reports that
say that their device last reported in period s than there were reports in s: counted, late or refused.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import floor, log10, pi
from typing import Literal

import numpy as np

from analytics.columns import ResultModel
from analytics.integrity.checks import ALPHA, Answers, Check, jump_check, negativity_check, sum_check, width_check
from protocols.arrays import Whole

Verdict = Literal["consistent", "changed", "contradicted"]
CheckName = Literal["sum", "widths", "negativity", "jump", "flow"]
MEANINGS: Mapping[CheckName, str] = {
    "sum": "answers support too many or too few values on average",
    "widths": "too many or too few answers support some number of values",
    "negativity": "fewer answers support some value than noise alone makes, or more than is possible",
    "jump": "shares changed at once",
    "flow": "more reports claim to follow those of an earlier period than that period had",
}


@dataclass(frozen=True, eq=False)
class Closed:
    """The reports of a closed period by gap, and those that do not count."""

    gaps: Whole  # in any order; several kinds of reports may have the same
    n: Whole
    refused: int = 0  # rows of this period, without repeats
    late: Mapping[int, int] = field(default_factory=dict)  # by period: late rows that came before this one was closed


class Flow(ResultModel):
    """How many reports say that their device last reported in a period, against those that there were."""

    period: int
    claimed: int
    reported: int

    @property
    def broken(self) -> bool:
        """Whether some gaps must be false, or reports were lost."""
        return self.claimed > self.reported


def flow_of(closed: Mapping[int, Closed], horizon: int) -> Flow | None:
    """The period with the least room for false gaps, of consecutive closed periods; None if none has a successor.

    >>> closed = {s: Closed(np.array([1, 3]), np.array(n)) for s, n in enumerate([[0, 50], [40, 5], [46, 2]])}
    >>> flow_of(closed, horizon=3)
    Flow(period=1, claimed=46, reported=45)
    """
    first, last = min(closed), max(closed)
    if first == last or horizon == 1:
        return None
    claimed = np.zeros(last - first + 1, dtype=np.int64)
    reported = np.array([closed[s].n.sum() + closed[s].refused for s in range(first, last + 1)], dtype=np.int64)
    for s in range(first, last + 1):
        gaps = closed[s].gaps.astype(np.int64)
        known = (gaps < horizon) & (gaps <= s - first)
        np.add.at(claimed, s - gaps[known] - first, closed[s].n[known])
        for late, rows in closed[s].late.items():
            if late >= first:
                reported[late - first] += rows
    place = int(np.argmin((reported - claimed)[:-1]))
    return Flow(period=first + place, claimed=int(claimed[place]), reported=int(reported[place]))


class CheckResult(ResultModel):
    """One check of one attribute."""

    p: float
    adjusted: float
    smallest: float | None


class AttributeIntegrity(ResultModel):
    """Whether the counts of one attribute can have come from honest devices."""

    name: str
    verdict: Verdict
    sum: CheckResult | None
    widths: CheckResult | None
    negativity: CheckResult
    jump: CheckResult | None
    flow: Flow | None

    @property
    def checks(self) -> dict[CheckName, CheckResult]:
        """Those that were made."""
        names: tuple[CheckName, ...] = ("sum", "widths", "negativity", "jump")
        return {name: check for name in names if (check := getattr(self, name)) is not None}

    @property
    def alarms(self) -> tuple[CheckName, ...]:
        """The checks that are unusual."""
        found = tuple(name for name, check in self.checks.items() if check.adjusted <= ALPHA)
        return (*found, *(("flow",) if self.flow is not None and self.flow.broken else ()))


class Integrity(ResultModel):
    """Whether the counts of one period can have come from honest devices. Estimates do not depend on it."""

    verdict: Verdict
    level: float = ALPHA
    looks: int
    flow: Flow | None
    attributes: tuple[AttributeIntegrity, ...]

    def attribute(self, name: str) -> AttributeIntegrity | None:
        return next((found for found in self.attributes if found.name == name), None)

    @property
    def alarms(self) -> tuple[tuple[str, CheckName], ...]:
        """What is unusual: attributes with checks; the flow of all reports has no attribute."""
        found = tuple((one.name, check) for one in self.attributes for check in one.alarms)
        return (*found, *((("", "flow"),) if self.flow is not None and self.flow.broken else ()))


def judged(checks: Collection[CheckName]) -> Verdict:
    """What unusual checks mean."""
    return "contradicted" if {*checks} - {"jump"} else "changed" if checks else "consistent"


def integrity_of(
    period: int,
    answers: Mapping[str, Answers],
    before: Mapping[str, Answers],
    flow: Flow | None,
    flows: Mapping[str, Flow | None],
) -> Integrity:
    """The verdict on a period with these answers by attribute, after those of the period before, and these flows."""
    checks = sum(2 + 2 * bool(len(found.laws)) for found in answers.values())
    factor = checks * pi**2 * (period + 1) ** 2 / 6
    level = ALPHA / factor if checks else ALPHA
    attributes = []
    for name, found in answers.items():
        wide = bool(len(found.laws))
        past = before.get(name)
        results: dict[str, CheckResult | None] = {
            "sum": _result(sum_check(found, level), factor) if wide else None,
            "widths": _result(width_check(found, level), factor) if wide else None,
            "negativity": _result(negativity_check(found, level), factor),
            "jump": _result(jump_check(found, past, level), factor) if past is not None else None,
        }
        one = AttributeIntegrity(name=name, verdict="consistent", flow=flows.get(name), **results)
        attributes.append(one.model_copy(update={"verdict": judged(one.alarms)}))
    every = Integrity(verdict="consistent", looks=period + 1, flow=flow, attributes=tuple(attributes))
    return every.model_copy(update={"verdict": judged([check for _, check in every.alarms])})


def _result(check: Check | None, factor: float) -> CheckResult | None:
    """Rounded to three digits: the last ones of a p-value may depend on the machine, and results must not."""
    if check is None:
        return None
    smallest = None if check.smallest is None else _rounded(check.smallest)
    return CheckResult(p=_rounded(check.p), adjusted=_rounded(min(1.0, factor * check.p)), smallest=smallest)


def _rounded(number: float) -> float:
    """Three significant digits.

    >>> _rounded(0.0123456), _rounded(0.0)
    (0.0123, 0.0)
    """
    return round(number, 2 - floor(log10(number))) if number > 0 else 0.0
