"""What an audit says: figures with what to compare them with, findings, and breaches of limits.

What the figures mean (wording.json), and how they are written: for the terminal and for the page. Trials are how often
an attack was right, with the exact intervals of Clopper and Pearson.

`python -m lab.attacks.report` prints the JSON Schema that is in docs/schemas/audit.json.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from math import inf
from statistics import variance
from typing import Any, Literal

from pydantic import Field

from analytics.integrity import Integrity
from protocols.errors import SettingsError, counted
from protocols.scheme import Scheme
from protocols.survey import Strict, html_table

Attack = Literal["guess", "place", "which", "link", "reidentify", "epsilon", "read", "forge"]
ATTACKS: tuple[Attack, ...] = ("guess", "place", "which", "link", "reidentify", "epsilon", "read", "forge")
Attacker = Literal["best", "published"]
Unit = Literal["chance", "nats", "bits", "share", "metres"]
UNITS: dict[Attack, Unit] = {"epsilon": "nats", "forge": "share", "place": "metres"}  # of the others: chances
EXPLAINED: dict[Attack, dict[str, str]] = json.loads((resources.files(__package__) / "wording.json").read_text("utf-8"))
"""Of each attack: a heading, a paragraph for readers, and the sentence about its worst figure."""


class Figure(Strict):
    """One attack on one target, with everything that it must be compared with."""

    attack: Attack
    target: str = Field(description="what is attacked: an attribute, a whole tuple, or what forged reports do")
    knows: str = Field(description="what the attacker knows and does, in words")
    reports: int | None = Field(description="how many linked reports the attacker sees; null: all there will ever be")
    unit: Unit
    luck: float | None = Field(description="the figure of somebody who sees nothing")
    histogram: float | None = Field(None, description="the figure of somebody who sees only the published histogram")
    measured: float | None = Field(None, description="what the attack reached; null: not measured")
    low: float | None = Field(None, description="lower end of the interval of `measured`, at 1 - alpha")
    high: float | None = Field(None, description="upper end; null: no upper end")
    trials: int | None = Field(None, description="how many independent trials were measured")
    best: float | None = Field(None, description="the best possible figure, computed; null: it has no closed form")
    exact: bool = Field(True, description="whether `best` is exact; otherwise it is an approximation or a bound")

    reached: bool = Field(
        True, description="whether the attack must reach `best`: not if it estimates what the best attacker knows"
    )
    detectable: float | None = Field(
        None, description="of epsilon: the smallest loss above `best` that so many trials would have refuted"
    )
    limited: bool = Field(True, description="whether --fail-above applies to it")

    @property
    def value(self) -> float | None:
        """The figure that a limit is compared with: the larger one, or the measured one where `best` is not exact."""
        if not self.exact and self.measured is not None:
            return self.measured
        known = [figure for figure in (self.best, self.measured) if figure is not None]
        return max(known, default=None)

    @property
    def name(self) -> str:
        """For sentences."""
        seen = "for ever" if self.reports is None else f"{self.reports} report{'s' * (self.reports != 1)}"
        return f"{self.attack} of {self.target} ({self.knows}; {seen})"


def plain(attack: Attack, target: str, knows: str, reports: float, best: float | None, **more: Any) -> Figure:
    """A figure, in the unit of its attack, for which the published histogram alone tells no more than luck, which is 0.

    `more` has what is otherwise. Infinitely many reports are all there will ever be.
    """
    seen, luck = None if reports == inf else int(reports), more.get("luck", 0.0)
    usual: dict[str, Any] = {"unit": UNITS.get(attack, "chance"), "luck": luck, "histogram": luck}
    return Figure(attack=attack, target=target, knows=knows, reports=seen, best=best, **(usual | more))


class Finding(Strict):
    """Something that the figures show and that somebody must know. `defect`: our own code is wrong."""

    code: str
    text: str
    defect: bool = False


class Need(Strict):
    """How many devices a deviation needs, so that the audit misses it in at most one run of a hundred."""

    deviation: str = Field(description="what devices might do")
    finding: str = Field(description="the code of what is then found")
    devices: int


class Tested(Strict):
    """One test of the conduct of devices."""

    name: str
    chance: float = Field(description="the chance of luck of this test alone, or a bound of it")
    adjusted: float = Field(description="the same in the family of all tests (Holm): compared with `level`")


class Conduct(Strict):
    """The tests of what devices do: all of them together refute healthy devices with a chance of at most `level`."""

    level: float
    devices: int
    periods: int
    needs: tuple[Need, ...]
    tests: tuple[Tested, ...]


class PeriodIntegrity(Strict):
    """The verdict on a period that was collected."""

    period: int
    integrity: Integrity


class AuditReport(Strict):
    """One audit of one survey, or of what was collected with it."""

    schema_version: int = 1
    survey: str
    fingerprint: str
    solution: str
    mechanisms: dict[str, str] = Field(description="the mechanism of each attribute")
    crowd: int = Field(description="among how many devices one must hide")
    attacker: Attacker
    alpha: float = Field(description="the chance that an interval or a bound is wrong")
    seed: int
    source: str | None = Field(
        None, description="whose values the measured devices had, or where collected results are; null: neither"
    )
    path: str | None = Field(None, description="which way the measured reports took; null: nothing was measured")
    devices: int | None = Field(None, description="how many devices were measured")
    periods: int | None = Field(None, description="in how many periods")
    figures: tuple[Figure, ...]
    integrity: tuple[PeriodIntegrity, ...] = Field((), description="of collected periods: their verdicts")
    conduct: Conduct | None = Field(None, description="of the devices of a program; null: not tested")
    findings: tuple[Finding, ...] = ()
    breaches: tuple[str, ...] = Field(
        (),
        description="a sentence for each limit that was exceeded, and for each collected period that is contradicted",
    )

    @classmethod
    def of(
        cls,
        scheme: Scheme,
        figures: Iterable[Figure],
        found: Iterable[Finding],
        fail_above: str,
        contradicted: tuple[str, ...] = (),
        **facts: Any,
    ) -> "AuditReport":
        """Of a survey; breaches are figures above their limits, and what contradicts honest devices."""
        shown = tuple(figures)
        return cls(
            survey=scheme.survey.id,
            fingerprint=scheme.fingerprint,
            solution=scheme.survey.solution,
            mechanisms={question.name: question.label for question in scheme.questions},
            figures=shown,
            findings=tuple(found),
            breaches=(*breaches(shown, parse_limits(fail_above)), *contradicted),
            **facts,
        )

    @property
    def defects(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.defect)

    def _repr_html_(self) -> str:
        columns = ("attack", "target", "knows", "reports", "luck", "best", "measured")
        rows = ([getattr(figure, name) for name in columns] for figure in self.figures)
        return html_table(f"Audit of {self.survey}", columns, rows, (finding.text for finding in self.findings))


Limit = tuple[float, bool]
"""The largest figure that is accepted; or, if True, how far it may be above luck (of epsilon: above its promise)."""


def parse_limits(text: str) -> dict[Attack, Limit]:
    """Limits by attack.

    >>> parse_limits("guess=0.5, epsilon=+0")
    {'guess': (0.5, False), 'epsilon': (0.0, True)}
    """
    limits: dict[Attack, Limit] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        attack = next((attack for attack in ATTACKS if attack == name.strip()), None)
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if attack is None or value < 0:
            raise SettingsError(
                f"{part!r} is not a limit", f"write guess=0.5 or link=+0.01; attacks are {', '.join(ATTACKS)}"
            )
        limits[attack] = value, number.strip().startswith("+")
    return limits


def breaches(figures: Iterable[Figure], limits: Mapping[Attack, Limit]) -> tuple[str, ...]:
    """A sentence for each figure that exceeds its limit."""
    found = []
    for figure in (f for f in figures if f.attack in limits and f.limited and f.unit != "bits"):
        limit, relative = limits[figure.attack]
        value, base, above = figure.value, figure.luck or 0.0, "luck,"
        if figure.attack == "epsilon" and relative:
            value, base, above = figure.measured, inf if figure.best is None else figure.best, "its promise of"
        if value is not None and value > limit + base * relative:
            stated = f"{limit:g}" + (f" above {above} {base:.4g}" if relative else "")
            found.append(f"{figure.name} reaches {value:.4g}, and the limit is {stated}")
    return tuple(found)


def worst(attack: Attack, figures: Iterable[Figure]) -> str:
    """The worst figure of an attack in words, beside luck; of losses, what comes nearest to its promise."""

    def badness(figure: Figure) -> float:
        if attack == "epsilon":
            best = figure.best or 1e-9
            return -1 / best if figure.measured is None else figure.measured / best
        above = (figure.value or 0.0) - (figure.luck or 0.0)
        return -above if attack == "place" else above

    unit = UNITS.get(attack, "chance")
    known = [f for f in figures if f.attack == attack and f.unit == unit and f.value is not None]
    known = [f for f in known if (f.limited or attack == "place") and (f.exact or attack != "epsilon")]
    if not known:
        return ""
    figure = max(known, key=badness)
    proven = f"measured, it is at least {shown(figure, figure.measured)}"
    said = EXPLAINED[attack]["worst"].format(
        target=figure.target.replace("_", " ").replace("*", " by "),
        value=shown(figure, figure.value),
        best=shown(figure, figure.best),
        luck=shown(figure, figure.luck),
        knows=figure.knows,
        known="measured" if figure.value == figure.measured else "computed",
        proven="computed; not measured" if figure.measured is None else proven,
        seen="all reports" if figure.reports is None else counted(figure.reports, "report"),
    )
    return said[:1].upper() + said[1:]


def shown(figure: Figure, value: float | None) -> str:
    """A figure in its unit."""
    if value is None:
        return ""
    if figure.unit == "chance":
        return f"{100 * value:.2f} %" if value >= 1e-3 or value == 0 else f"{100 * value:.1e} %"
    if figure.unit == "share":
        return f"{100 * value:+.2f} points"
    if figure.unit == "metres":
        return f"{value:,.0f} m"
    return f"{value:.3f}" + (" bits" if figure.unit == "bits" else "")


def interval(figure: Figure) -> str:
    """The interval of a measured figure."""
    if figure.low is None:
        return ""
    if figure.high is None:
        return f"at least {shown(figure, figure.low)}"
    return f"{shown(figure, figure.low)} to {shown(figure, figure.high)}"


@dataclass(frozen=True)
class Trials:
    """How often an attack was right. Ties are shared, so `right` need not be whole."""

    right: float = 0.0
    count: float = 0

    def __add__(self, other: "Trials") -> "Trials":
        return Trials(self.right + other.right, self.count + other.count)

    @property
    def share(self) -> float | None:
        return self.right / self.count if self.count else None

    def interval(self, alpha: float) -> tuple[float, float]:
        """Contains the true chance with 1 - alpha, both sides alike.

        >>> [[round(end, 3) for end in Trials(right, 10).interval(0.05)] for right in (0, 10)], Trials().interval(0.05)
        ([[0.0, 0.308], [0.692, 1.0]], (0.0, 1.0))
        """
        from scipy.stats import beta  # takes over a second to import

        right, wrong = self.right, self.count - self.right
        low = 0.0 if right <= 0 else float(beta.ppf(alpha / 2, right, wrong + 1))
        return low, 1.0 if wrong <= 0 else float(beta.isf(alpha / 2, right + 1, wrong))

    def figure(self, alpha: float, runs: "Sequence[Trials]" = (), /, **terms: Any) -> Figure:
        """The chance that was measured, beside what it must be compared with; if in several `runs`, these differ."""
        low, high = (effective(runs, alpha) if runs else self).interval(alpha)
        return plain(measured=self.share, low=low, high=high, trials=round(self.count), **terms)


def effective(runs: Sequence[Trials], alpha: float) -> Trials:
    """As many independent trials as say as much as these runs, whose chances differ (Korn and Graubard 1998).

    Shares that differ more from run to run than those of single trials would are fewer trials, and so is a spread that
    is known from a few runs only.

    >>> [round(effective([Trials(30, 100), Trials(70, 100)] * times, 0.05).count) for times in (3, 100)]
    [18, 1229]
    """
    from scipy.stats import t  # takes over a second to import

    total = sum(runs, Trials())
    share, shares = total.share or 0.0, [run.share or 0.0 for run in runs]
    if len(runs) < 2 or variance(shares) == 0:
        return total
    known = (t.isf(alpha / 2, total.count - 1) / t.isf(alpha / 2, len(runs) - 1)) ** 2
    count = min(total.count, known * share * (1 - share) * len(runs) / variance(shares))
    return Trials(share * count, count)


def defects(figures: Iterable[Figure], alpha: float) -> list[Finding]:
    """Figures that contradict what is exact, all of them together with a chance of at most alpha if nothing is wrong.

    A proven loss above the promise, and an attack that is right more often than is computed for it, or, if it knows all
    that the best attacker knows, less often: the devices then do not do what the survey says.
    """
    found, chances = [], []
    for figure in figures:
        measured, best = figure.measured, figure.best
        if measured is None or best is None:
            continue
        if figure.attack == "epsilon" and figure.low is not None and figure.low > best + 1e-9:
            text = f"{figure.name}: a loss of {measured:.4g} is proven, and {best:.4g} is promised"
            found.append(Finding(code="loss-above-promise", text=text, defect=True))
        if figure.unit == "chance" and figure.trials and figure.exact:
            chances.append((figure, Trials(measured * figure.trials, figure.trials), best))
    for figure, trials, best in chances:
        low, high = trials.interval(alpha / 4 / len(chances))  # half is for proven losses, a quarter for `beside`
        if low > best or (figure.reached and best > high):
            text = (
                f"{figure.name}: the attack was right in {figure.measured:.2%} of {figure.trials:,.0f}, which means "
                f"{low:.2%} to {high:.2%}, and {best:.2%} is computed"
            )
            found.append(Finding(code="not-as-computed", text=text, defect=True))
    return found


def schema() -> str:
    """The JSON Schema of a report, as it is in docs/schemas."""
    return json.dumps(AuditReport.model_json_schema(mode="serialization"), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema())
