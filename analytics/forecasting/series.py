"""A series to forecast: unbiased values, and how much of their variance is noise of which kind."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from protocols.arrays import Floats, Whole

CYCLES, UNSEASONAL = 4, 24  # seasons, or periods, over which the size of future noise is averaged


@dataclass(frozen=True, eq=False)
class Series:
    """Values of consecutive periods; NaN where one is missing or suppressed.

    Values are unbiased estimates: never clipped at 0, never made consistent. `fresh` is the variance R_t of noise that
    is new in every period, `memo` the variance B_t of noise that stays (0 where the value is exact).
    """

    name: str
    values: Floats
    fresh: Floats
    memo: Floats
    first: int = 0  # the number of the first period
    clock: Callable[[Whole], Whole] = lambda periods: periods
    """From numbers of periods to those that count for seasons: with a time zone, as the clock on the wall counts.
    Without one, all follow each other."""

    @staticmethod
    def exact(name: str, values: Floats) -> "Series":
        """A series without noise."""
        return Series(name, values, np.zeros(len(values)), np.zeros(len(values)))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, periods: slice) -> "Series":
        """A part of consecutive periods."""
        begin, _, step = periods.indices(len(self))
        assert step == 1
        parts = {part: getattr(self, part)[periods] for part in ("values", "fresh", "memo")}
        return replace(self, **parts, first=self.first + begin)

    def numbers(self, begin: int, end: int) -> Whole:
        """Of the periods at these places, from which seasons have their phases; also of those to come."""
        return self.clock(np.arange(self.first + begin, self.first + end))

    @property
    def known(self) -> int:
        """How many values there are."""
        return int(np.isfinite(self.values).sum())


def future_noise(recent: Floats, phases: int, ahead: int) -> Floats:
    """The variance of noise `[..., step]` to expect in the next periods, from that of recent ones `[..., period]`.

    It is the mean of the same phases of these seasons.

    Noise grows with the number of reports, which has seasons too.

    >>> future_noise(np.array([1.0, 5.0] * 10), 2, 3).tolist()
    [1.0, 5.0, 1.0]
    """
    missing = np.full((*recent.shape[:-1], -recent.shape[-1] % phases), np.nan)
    cycles = np.concatenate([missing, recent], axis=-1).reshape(*recent.shape[:-1], -1, phases)
    expected, overall = mean_of_known(cycles, axis=-2), mean_of_known(recent, axis=-1)[..., None]
    expected = np.where(np.isnan(expected), np.where(np.isnan(overall), 0.0, overall), expected)
    return expected[..., np.arange(ahead) % phases]


def mean_of_known(numbers: Floats, axis: int | tuple[int, ...]) -> Floats:
    """The mean of those that are known; NaN if none is."""
    known = np.isfinite(numbers)
    count = known.sum(axis=axis)
    total = np.where(known, numbers, 0.0).sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))
