"""The histogram of an ordered attribute: expectation-maximisation that stops early (PROTOCOLS 6).

An ordered mechanism confuses neighbouring values, so the likeliest histogram has spikes that are not in the truth. A
few steps of the iterative Bayesian update (IBU) from the even histogram are usually far closer to it than the limit.
The number of steps is chosen without looking at the truth, by binomial thinning: the reports are divided at random into
ten parts. Each part is held out in turn, the others are fitted, and the steps are taken that make the held-out reports
likeliest. The division is seeded by the counts, so the same counts give the same histogram.

Stopping early smooths, which a bootstrap does not notice. The half width of an interval is z times the root of

    the variance of the fit over resampled reports
    + the variance of sampling the devices that reported
    + the mean square, over the value and its neighbours, of the difference from the unbiased estimate

The unbiased estimate smooths nothing, so the last part contains what stopping early has removed, and the noise of the
unbiased estimate besides. No interval that is much shorter than that of the unbiased estimate can cover every truth.
What this one promises is measured, not proved, for 95 %: on average over the values of an attribute it contains the
share in 95 of 100 cases or more, and the highest value of an attribute in about 95 (in 90 where the truth is a comb or
a spike). It is about a quarter shorter than the interval of the unbiased estimate.
"""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.votes import unbiased
from protocols.arrays import Floats
from protocols.mechanisms import MatrixChannel

PARTS = 10  # each is held out once
MOST_STEPS = 1500
AS_GOOD = 0.1  # difference in the log-likelihood of all held-out reports
MOST_WORK = 2_000_000_000  # multiplications: bounds the steps and the resamples for attributes with many values
RESAMPLES = (20, 60)  # fewest and most
ONE_THREAD = 1 << 18  # multiplications of a matrix product for which BLAS starts no threads
NEIGHBOURS = 2  # on each side
TINY = 1e-300


def early_stopped(counts: NDArray[np.int64], channel: MatrixChannel) -> tuple[Floats, int]:
    """The histogram for `counts[value]` reports that name each value, and the number of steps. At least one report.

    >>> from analytics.estimation.votes import norm_sub
    >>> from protocols.mechanisms.rounds import geometric
    >>> channel = MatrixChannel(geometric(20, 0.5).matrix)
    >>> bell = np.exp(-((np.arange(20) - 8) ** 2) / 18)
    >>> truth = bell / bell.sum()
    >>> counts = np.random.default_rng(0).multinomial(5000, channel.support(truth))
    >>> share, _ = early_stopped(counts, channel)
    >>> rough = norm_sub(unbiased(counts / 5000, channel))
    >>> bool(((share - truth) ** 2).sum() < ((rough - truth) ** 2).sum() / 10)
    True
    """
    steps = _best_steps(counts, channel.matrix)
    return _fit(counts[None] / counts.sum(), channel.matrix, steps)[0], steps


def half_width(counts: NDArray[np.int64], channel: MatrixChannel, share: Floats, steps: int, z: float) -> Floats:
    """Half the width of the interval of each share in `early_stopped`; z is in standard errors."""
    n = int(counts.sum())
    fewest, most = RESAMPLES
    resamples = max(fewest, min(most, MOST_WORK // (2 * steps * channel.k**2)))
    drawn = _random(counts).multinomial(n, counts / n, size=resamples)
    variance = _fit(drawn / n, channel.matrix, steps).var(axis=0, ddof=1)
    removed = unbiased(counts / n, channel) - share
    return np.asarray(z * np.sqrt(variance + share * (1 - share) / n + _moving_mean(removed**2)))


def _best_steps(counts: NDArray[np.int64], matrix: Floats) -> int:
    """How many steps make the held-out reports likeliest.

    The search ends some time after their likelihood falls. Of steps that are practically as good the last is taken,
    because where the truth is a spike, many steps gain little likelihood but much accuracy.
    """
    held = _random(counts).multinomial(counts, np.full(PARTS, 1 / PARTS)).T
    kept = counts - held
    update = _Update.of(kept / np.maximum(kept.sum(axis=1, keepdims=True), 1), matrix)
    fitted = update.even
    expected = update.reports(fitted)
    likelihoods: list[float] = []
    best = 0  # its place in the list: one less than the number of steps
    for place in range(max(1, min(MOST_STEPS, MOST_WORK // (2 * held.size * len(counts))))):
        fitted = update.step(fitted, expected)
        expected = update.reports(fitted)
        likelihoods.append(float((held * np.log(expected)).sum()))
        if likelihoods[place] > likelihoods[best]:
            best = place
        elif place >= 3 * best + 10:
            break
    return int(np.flatnonzero(np.array(likelihoods) >= likelihoods[best] - AS_GOOD)[-1]) + 1


def _fit(shares: Floats, matrix: Floats, steps: int) -> Floats:
    """So many steps from the even histogram, for rows of observed shares."""
    update = _Update.of(shares, matrix)
    fitted = update.even
    for _ in range(steps):
        fitted = update.step(fitted, update.reports(fitted))
    return fitted


@dataclass(frozen=True, eq=False)
class _Update:
    """The iterative Bayesian update for rows of observed shares.

    The matrix is cut into blocks of columns, so that each product is small enough for one thread. The result is then
    the same on any number of cores, and threads of other processes do not slow each other down.
    """

    shares: Floats
    forward: Floats  # blocks of the matrix
    backward: Floats  # and of its transpose

    @classmethod
    def of(cls, shares: Floats, matrix: Floats) -> "_Update":
        k = len(matrix)
        width = max(1, min(k, ONE_THREAD // shares.size))

        def blocks(square: Floats) -> Floats:
            padded = np.pad(square, ((0, 0), (0, -k % width)))
            return np.ascontiguousarray(padded.reshape(k, -1, width).transpose(1, 0, 2))

        return cls(shares, blocks(matrix), blocks(matrix.T))

    @property
    def even(self) -> Floats:
        return np.full(self.shares.shape, 1 / self.shares.shape[1])

    def reports(self, fitted: Floats) -> Floats:
        """The shares of reports to expect if these are the histograms; above 0."""
        return np.maximum(self._times(fitted, self.forward), TINY)

    def step(self, fitted: Floats, expected: Floats) -> Floats:
        return np.asarray(fitted * self._times(self.shares / expected, self.backward))

    def _times(self, rows: Floats, blocks: Floats) -> Floats:
        product = np.matmul(rows, blocks).transpose(1, 0, 2)
        return np.asarray(product.reshape(len(rows), -1)[:, : rows.shape[1]])


def _moving_mean(row: Floats) -> Floats:
    """The mean over each value and its neighbours; the values at the ends stand in for those beyond them.

    >>> _moving_mean(np.array([0.0, 0, 5, 0, 0])).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    width = 2 * NEIGHBOURS + 1
    return np.convolve(np.pad(row, NEIGHBOURS, mode="edge"), np.full(width, 1 / width), mode="valid")


def _random(counts: NDArray[np.int64]) -> np.random.Generator:
    digest = sha256(counts.astype("<i8").tobytes()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))
