"""How often an attack was right, with the exact intervals of Clopper and Pearson, and figures that cannot be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import variance
from typing import Any

from lab.audit.report import Figure, Finding, plain


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
