"""Exact intervals of measured chances: Clopper and Pearson's."""

from __future__ import annotations

from dataclasses import dataclass


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
        return self.at_least(alpha / 2), self.at_most(alpha / 2)

    def at_least(self, alpha: float) -> float:
        """The true chance is at least this, with 1 - alpha."""
        return lower_end(self.right, self.count, alpha)

    def at_most(self, alpha: float) -> float:
        """The true chance is at most this, with 1 - alpha."""
        from scipy.stats import beta  # takes over a second to import

        return 1.0 if self.right >= self.count else float(beta.isf(alpha, self.right + 1, self.count - self.right))


def lower_end(right: float, count: float, alpha: float) -> float:
    """The chance is at least this, with 1 - alpha, if so many of so many trials were right (or are expected to be)."""
    from scipy.stats import beta  # takes over a second to import

    return 0.0 if right <= 0 else float(beta.ppf(alpha, right, count - right + 1))
