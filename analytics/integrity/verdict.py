"""The verdict on a period: all checks of all attributes, corrected for looking at every period for ever.

The period number t (from 0) may spend 6 alpha / (pi^2 (t + 1)^2) of alpha, divided among its checks, so all periods
together spend alpha. A check's `adjusted` p-value is its own times these factors: at most alpha is an alarm.
"""

from collections.abc import Mapping
from math import floor, log10, pi
from typing import Literal, TypeVar

from pydantic import Field

from analytics.columns import ResultModel
from analytics.integrity.checks import ALPHA, Answers, Check, jump_check, negativity_check, sum_check, width_check
from analytics.integrity.flow import Flow

Verdict = Literal["consistent", "changed", "contradicted"]
CheckName = Literal["sum", "widths", "negativity", "jump", "flow"]
MEANINGS: Mapping[CheckName, str] = {
    "sum": "answers support too many or too few values on average",
    "widths": "too many or too few answers support some number of values",
    "negativity": "fewer answers support some value than noise alone makes, or more than is possible",
    "jump": "shares changed at once",
    "flow": "more reports claim to follow those of an earlier period than that period had",
}


class CheckResult(ResultModel):
    """One check of one attribute."""

    p: float = Field(description="the chance, at most, that honest reports are so unusual: of this check alone")
    adjusted: float = Field(description="the same for all checks and all periods since the survey began, at most 1")
    smallest: float | None = Field(
        description="the smallest share of forged reports that would have been noticed with a chance of 90 %; null if "
        "none would"
    )

    @property
    def alarms(self) -> bool:
        return self.adjusted <= ALPHA


class AttributeIntegrity(ResultModel):
    """Whether the counts of one attribute can have come from honest devices."""

    name: str
    verdict: Verdict = Field(
        description="contradicted: honest devices do not make such reports; changed: only the jump is unusual"
    )
    sum: CheckResult | None = Field(description="mean width; null where every answer supports one value")
    widths: CheckResult | None = Field(description="answers of each width; null where every answer supports one value")
    negativity: CheckResult = Field(description="supports below what noise alone makes, or above what is possible")
    jump: CheckResult | None = Field(description="against the period before; null without one, or with few reports")
    flow: Flow | None = Field(
        description="of this attribute's reports; null unless each device answers one attribute in every period"
    )

    @property
    def checks(self) -> dict[CheckName, CheckResult]:
        """Those that were made."""
        names: tuple[CheckName, ...] = ("sum", "widths", "negativity", "jump")
        return {name: check for name in names if (check := getattr(self, name)) is not None}

    @property
    def alarms(self) -> tuple[CheckName, ...]:
        """The checks that are unusual."""
        found = tuple(name for name, check in self.checks.items() if check.alarms)
        return (*found, *(("flow",) if self.flow is not None and self.flow.broken else ()))


class Integrity(ResultModel):
    """Whether the counts of one period can have come from honest devices. Estimates do not depend on it."""

    verdict: Verdict = Field(description="the worst of the attributes', or contradicted if the flow is broken")
    level: float = Field(ALPHA, description="the chance of a false alarm in the whole life of the survey")
    looks: int = Field(description="how many periods were looked at, at most: this one's number, counted from 1")
    flow: Flow | None = Field(description="of all reports; null for the first period")
    attributes: tuple[AttributeIntegrity, ...] = Field(description="those with enough reports to be published")

    def attribute(self, name: str) -> AttributeIntegrity | None:
        return next((found for found in self.attributes if found.name == name), None)

    @property
    def alarms(self) -> tuple[tuple[str, CheckName], ...]:
        """What is unusual: attributes with checks; the flow of all reports has no attribute."""
        found = tuple((one.name, check) for one in self.attributes for check in one.alarms)
        return (*found, *((("", "flow"),) if self.flow is not None and self.flow.broken else ()))


Judged = TypeVar("Judged", AttributeIntegrity, Integrity)


def judged(found: Judged) -> Judged:
    """The same with the verdict that its alarms mean."""
    checks = {check if isinstance(check, str) else check[1] for check in found.alarms}
    verdict = "contradicted" if checks - {"jump"} else "changed" if checks else "consistent"
    return found.model_copy(update={"verdict": verdict})


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
        attributes.append(judged(one))
    return judged(Integrity(verdict="consistent", looks=period + 1, flow=flow, attributes=tuple(attributes)))


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
