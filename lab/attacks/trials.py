"""How often an attack was right, with the exact intervals of Clopper and Pearson, and figures that cannot be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lab.audit.report import Figure, Finding


@dataclass(frozen=True)
class Trials:
    """How often an attack was right. Ties are shared, so `right` need not be whole."""

    right: float = 0.0
    count: int = 0

    def __add__(self, other: Trials) -> Trials:
        return Trials(self.right + other.right, self.count + other.count)

    @property
    def share(self) -> float | None:
        return self.right / self.count if self.count else None

    def interval(self, alpha: float) -> tuple[float, float]:
        """Contains the true chance with 1 - alpha, both sides alike.

        >>> [round(end, 3) for end in Trials(0, 10).interval(0.05)], Trials().interval(0.05)
        ([0.0, 0.308], (0.0, 1.0))
        """
        from scipy.stats import beta  # takes over a second to import

        wrong = self.count - self.right
        high = 1.0 if wrong <= 0 else float(beta.isf(alpha / 2, self.right + 1, wrong))
        return lower_end(self.right, self.count, alpha / 2), high

    def figure(self, alpha: float, **terms: Any) -> Figure:
        """The chance that was measured, beside what it must be compared with."""
        low, high = self.interval(alpha)
        return Figure(unit="chance", measured=self.share, low=low, high=high, trials=self.count, **terms)


def lower_end(right: float, count: float, alpha: float) -> float:
    """The chance is at least this, with 1 - alpha, if so many of so many trials were right (or are expected to be)."""
    from scipy.stats import beta  # takes over a second to import

    return 0.0 if right <= 0 else float(beta.ppf(alpha, right, count - right + 1))


def defects(figures: Iterable[Figure], alpha: float) -> list[Finding]:
    """Figures that contradict what is exact, all of them together with a chance of at most alpha if nothing is wrong.

    A proven loss above the promise, and an attack that is right more often than is computed for it, or, if it knows all
    that the best attacker knows, less often: the devices then do not do what the survey says.
    """
    found, chances = [], []
    for figure in figures:
        measured, best = figure.measured, figure.best
        if figure.attack == "epsilon" and figure.low is not None and best is not None and figure.low > best + 1e-9:
            text = f"{figure.name}: a loss of {measured:.4g} is proven, and {best:.4g} is promised"
            found.append(Finding(code="loss-above-promise", text=text, defect=True))
        if figure.unit == "chance" and figure.trials and figure.exact and best is not None and measured is not None:
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
