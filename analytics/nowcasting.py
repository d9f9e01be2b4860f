"""What is true now, from what was published of this period and of earlier ones: a bank of Kalman filters.

An unbiased estimate is a sum of parts, of which the first two are asked for:

    estimate = level + season + memo + fresh

    level, season   the truth: a level that drifts and sometimes jumps, and a season of known length
    memo            noise that comes back with the devices, so nothing averages it away; its variance is added at last
    fresh           noise that is new in every period, of known variance

Nobody knows how fast the level moves. So a filter runs for each hypothesis of a bank [age, drift]: how many periods ago
the level last jumped, and how large its steps are. A hypothesis has weight by how well it predicts what comes. What is
published is the mean of this mixture, and its quantiles. Nothing later is used: a nowcast never changes.
"""

from math import pi

import numpy as np

from analytics.estimation.estimates import CONFIDENCE, Estimates
from protocols.arrays import Floats

# Standard deviations of a step, in units of that of fresh noise.
DRIFTS = np.array([0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28])
PRIOR = np.exp(0.2 * np.arange(len(DRIFTS)))  # larger drifts are a little more probable: intervals cover changes
AGES = 12  # the last one is that age, or more, or never
JUMP, JUMP_PROBABILITY = 2.0, 0.01  # standard deviation of a jump in the same units, and how often one comes
LEAK = 0.01  # the part of the weights of drifts that returns to the prior in each period: what was calm may move again
LEVEL, LEVEL_DEVIATION, SEASON_DEVIATION = 0.5, 0.5, 0.15  # of shares, before anything is known
SEASON_DRIFT = 1e-4  # variance of a step of the season, in units of that of fresh noise
LONGEST_OF_WHOLE_BANK = 7  # a filter takes the square of its season, so longer ones have a smaller bank
UNEXPECTED = 0.01  # an estimate is, if its p-value is smaller
BISECTIONS, WIDEST = 12, 6.25  # quantiles are at most 6.25 errors from the mean (Cantelli); 12: to 0.0015 errors
_TINY = 1e-300  # instead of 0, where that would be divided by, or its logarithm taken


class Nowcaster:
    """The filters of many series of shares. In each period ask for `predict`, then `update`, then `now`.

    >>> calm = Nowcaster(1)
    >>> for share in (0.28, 0.33, 0.31, 0.29, 0.3, 0.31):
    ...     expected = calm.predict(period=0)
    ...     surprise = calm.update(np.array([share]), np.array([0.02**2]))
    >>> now = calm.now(memo=np.array([0.0]))
    >>> now.value.round(3).tolist(), now.error.round(3).tolist(), surprise.round(1).tolist()
    ([0.304], [0.011], [0.7])
    """

    def __init__(self, series: int, season: int = 1, largest_drift: float = np.inf) -> None:
        # Five drifts between the smallest and the largest: with the five middle ones, 1 point a period has cover 0.87.
        every, ages = (1, AGES) if season <= LONGEST_OF_WHOLE_BANK else (2, 4)
        self._season, self._largest = season, largest_drift
        self._drifts, self._prior = DRIFTS[::every, None], PRIOR[::every, None]
        deviations = np.array([LEVEL_DEVIATION, *[SEASON_DEVIATION] * (season - 1)])
        bank = (ages, len(self._drifts), series)
        self._mean = np.zeros((season, *bank))
        self._mean[0] = LEVEL
        self._spread = np.zeros((season, season, *bank))  # covariances
        self._spread[np.arange(season), np.arange(season)] = deviations.reshape(-1, 1, 1, 1) ** 2
        self._weight = np.zeros(bank)
        self._weight[-1] = self._prior / self._prior.sum()
        self._fresh: list[Floats] = []  # variances of all periods so far
        self._shape = np.ones(season)  # what of the state is seen in the present period

    def predict(self, period: int) -> Floats:
        """Move on to the next period; returns what is expected in it, `[series]`."""
        if self._fresh:
            self._move(_middle(np.stack(self._fresh)))
        self._shape = _harmonics(self._season, period)
        return np.asarray((self._weight * self._seen).sum(axis=(0, 1)))

    def update(self, values: Floats, fresh: Floats) -> Floats:
        """Take in the estimates of the period, with the variances of their fresh noise; returns p-values.

        NaN where nothing is known: there the state only moves.
        """
        from scipy.special import ndtr  # readers of results do without it

        known = np.isfinite(values)
        if known.any() or self._fresh:
            self._fresh.append(np.where(known, fresh, np.nan))
        towards = np.tensordot(self._shape, self._spread, 1)
        expected = np.tensordot(self._shape, towards, 1) + np.where(known, fresh, 1.0)
        surprise = np.where(known, values - self._seen, 0.0)
        below = (self._weight * ndtr(surprise / np.sqrt(expected))).sum(axis=(0, 1))
        gain = towards / expected * known
        self._mean += gain * surprise
        self._spread -= gain[:, None] * towards
        fit = np.log(np.maximum(self._weight, _TINY)) - known * (np.log(expected) + surprise**2 / expected) / 2
        self._weight = np.exp(fit - fit.max(axis=(0, 1)))
        self._weight /= self._weight.sum(axis=(0, 1))
        return np.where(known, 2 * np.minimum(below, 1 - below), np.nan)

    def now(self, memo: Floats) -> Estimates:
        """The truth in this period; `memo` are the variances of what comes back in every period."""
        from scipy.special import ndtr

        weight, mean = (part.reshape(-1, part.shape[-1]) for part in (self._weight, self._seen))
        spread = np.tensordot(self._shape, np.tensordot(self._shape, self._spread, 1), 1).reshape(mean.shape) + memo
        value = (weight * mean).sum(axis=0)
        error = np.sqrt((weight * (spread + (mean - value) ** 2)).sum(axis=0))
        deviation = np.sqrt(np.maximum(spread, _TINY))

        wanted = np.array([[(1 - CONFIDENCE) / 2], [(1 + CONFIDENCE) / 2]])
        low, high = value - WIDEST * error + 0 * wanted, value + WIDEST * error + 0 * wanted
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            above = (weight * ndtr((middle[:, None] - mean) / deviation)).sum(axis=1) >= wanted
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return Estimates(value, error, *((low + high) / 2))

    @property
    def _seen(self) -> Floats:
        return np.asarray(np.tensordot(self._shape, self._mean, 1))

    def _move(self, unit: Floats) -> None:
        """One period on: steps of all hypotheses, a jump from each drift, and the two oldest ages become one."""
        possible = self._drifts * np.sqrt(unit) <= self._largest
        prior = self._prior * possible
        drifts = self._weight.sum(axis=0)
        leaked = ((1 - LEAK) * drifts + LEAK * prior / prior.sum(axis=0)) * possible
        weight = self._weight * (leaked / leaked.sum(axis=0) / np.maximum(drifts, _TINY))
        state = weight, self._mean, self._spread
        jumped, oldest = _merged(*state), _merged(*(part[..., -2:, :, :] for part in state))
        self._weight, self._mean, self._spread = (
            np.concatenate([young, part[..., :-2, :, :], old], axis=-3)
            for young, part, old in zip(jumped, state, oldest, strict=True)
        )
        self._weight[0] *= JUMP_PROBABILITY
        self._weight[1:] *= 1 - JUMP_PROBABILITY
        self._spread[0, 0, 0] += JUMP**2 * unit
        self._spread[0, 0] += self._drifts**2 * unit
        for place in range(1, self._season):
            self._spread[place, place] += SEASON_DRIFT * unit


def _merged(weight: Floats, mean: Floats, spread: Floats) -> tuple[Floats, Floats, Floats]:
    """Hypotheses of all ages as one of the same moments."""
    total = weight.sum(axis=0, keepdims=True)
    part = weight / np.maximum(total, _TINY)
    middle = (part * mean).sum(axis=-3, keepdims=True)
    apart = mean - middle
    return total, middle, (part * (spread + apart[:, None] * apart)).sum(axis=-3, keepdims=True)


def _middle(numbers: Floats) -> Floats:
    """The (lower) median of each column `[period, series]` without its NaN; 0 where there is nothing else.

    >>> _middle(np.array([[1.0, np.nan], [3.0, np.nan], [2.0, np.nan]])).tolist()
    [2.0, 0.0]
    """
    ordered = np.sort(numbers, axis=0)  # NaN last
    known = np.isfinite(ordered).sum(axis=0)
    middle = np.take_along_axis(ordered, (np.maximum(known, 1)[None] - 1) // 2, axis=0)[0]
    return np.asarray(np.nan_to_num(middle))


def _harmonics(season: int, period: int) -> Floats:
    """What of the state is seen in a period: the level, and cosine and sine of every harmonic of the season.

    >>> _harmonics(2, 3).tolist(), len(_harmonics(7, 0))
    ([1.0, -1.0], 7)
    """
    angles = 2 * pi * np.arange(1, season // 2 + 1) * (period % season) / season
    waves = np.stack([np.cos(angles), np.sin(angles)], axis=1).ravel()
    return np.concatenate([[1.0], waves])[:season]  # of an even season, the last sine is 0 in every period
