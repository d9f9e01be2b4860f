"""Expectation-maximisation that stops early, for mechanisms that confuse neighbours (PROTOCOLS 6 and 10).

The number of steps is chosen without looking at the truth: ten parts of the reports are held out in turn. Every report
is held out once: with single draws of a tenth, an unlucky one may stop so early that errors double. The same counts are
divided alike.

Of an ordered attribute, a bootstrap does not notice what stopping early smooths. The unbiased estimate smooths
nothing, so the mean square of the difference from it contains what was removed, and the noise of the unbiased
estimate besides. What an interval promises is measured, not proved, for 95 %: on average over the values of an
attribute it contains the share in 95 of 100 cases or more, and the highest value of an attribute in about 95 (in 90
where the truth is a comb or a spike). It is about a quarter shorter than the interval of the unbiased estimate.
"""

from __future__ import annotations  # numpy.random is loaded when it is used, and not for a type

from hashlib import sha256
from typing import Protocol

import numpy as np

from analytics.estimation.votes import unbiased
from protocols.arrays import Floats, Whole
from protocols.mechanisms import MatrixRound

PARTS = 10  # each is held out once
TINY = 1e-300
MOST_STEPS = 1500
AS_GOOD = 0.1  # where the truth is a spike, many steps gain little likelihood of held-out reports but much accuracy
MOST_WORK = 2_000_000_000  # multiplications: bounds the steps and the resamples for attributes with many values
RESAMPLES = (20, 60)  # fewest and most
ONE_THREAD = 1 << 18  # multiplications of a matrix product for which BLAS starts no threads
NEIGHBOURS = 2  # on each side


class Blur(Protocol):
    """How shares become chances of reports, for rows of them; and the way back: the transpose."""

    def support(self, frequencies: Floats) -> Floats: ...

    def back(self, votes: Floats) -> Floats: ...


def held_out(counts: Whole, blur: Blur, most: int, divisions: int = 1, fall: float = 0.0) -> Floats:
    """The log-likelihood of all held-out reports after each step; at least one report.

    The search ends some time after it falls, and not before it has fallen so far.
    """
    random = seeded(counts)
    held = np.concatenate([random.multinomial(counts, np.full(PARTS, 1 / PARTS)).T for _ in range(divisions)])
    kept = counts - held
    observed = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1)
    shares = np.full(held.shape, 1 / len(counts))
    expected = blur.support(shares)
    likelihoods: list[float] = []
    best = 0  # its place in the list: one less than the number of steps
    for place in range(most):
        shares = shares * blur.back(observed / np.maximum(expected, TINY))
        expected = blur.support(shares)
        likelihoods.append(float((held * np.log(np.maximum(expected, TINY))).sum()) / divisions)
        if likelihoods[place] > likelihoods[best]:
            best = place
        elif place >= 3 * best + 10 and likelihoods[place] <= likelihoods[best] - fall:
            break
    return np.array(likelihoods)


def last_within(likelihoods: Floats, fall: float) -> int:
    """The last number of steps with which held-out reports are not less likely by more than this."""
    return int(np.flatnonzero(likelihoods >= likelihoods.max() - fall)[-1]) + 1


def advance(observed: Floats, blur: Blur, steps: int, start: Floats | None = None) -> Floats:
    """So many steps towards the likeliest shares, for rows of observed shares; from the even ones, or from others."""
    shares = np.full(observed.shape, 1 / observed.shape[-1]) if start is None else start
    for _ in range(steps):
        shares = shares * blur.back(observed / np.maximum(blur.support(shares), TINY))
    return shares


def seeded(counts: Whole) -> np.random.Generator:
    """Random numbers that follow from counts."""
    digest = sha256(counts.astype("<i8").tobytes()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def early_stopped(counts: Whole, channel: MatrixRound) -> tuple[Floats, int]:
    """The histogram for `counts[value]` reports that name each value, and the number of steps. At least one report.

    >>> from analytics.estimation.votes import norm_sub
    >>> from protocols.mechanisms.rounds import geometric
    >>> channel = MatrixRound(geometric(20, 0.5).matrix)
    >>> bell = np.exp(-((np.arange(20) - 8) ** 2) / 18)
    >>> truth = bell / bell.sum()
    >>> counts = np.random.default_rng(0).multinomial(5000, channel.support(truth))
    >>> share, _ = early_stopped(counts, channel)
    >>> rough = norm_sub(unbiased(counts / 5000, channel))
    >>> bool(((share - truth) ** 2).sum() < ((rough - truth) ** 2).sum() / 10)
    True
    """
    most = max(1, min(MOST_STEPS, MOST_WORK // (2 * PARTS * channel.k**2)))
    steps = last_within(held_out(counts, _InBlocks(channel.matrix, PARTS), most), AS_GOOD)
    return advance(counts[None] / counts.sum(), _InBlocks(channel.matrix, 1), steps)[0], steps


def half_width(counts: Whole, channel: MatrixRound, share: Floats, steps: int, z: float) -> Floats:
    """Half the width of the interval of each share in `early_stopped`; z is in standard errors."""
    n = int(counts.sum())
    fewest, most = RESAMPLES
    resamples = max(fewest, min(most, MOST_WORK // (2 * steps * channel.k**2)))
    drawn = seeded(counts).multinomial(n, counts / n, size=resamples)
    variance = advance(drawn / n, _InBlocks(channel.matrix, resamples), steps).var(axis=0, ddof=1)
    removed = unbiased(counts / n, channel) - share
    return np.asarray(z * np.sqrt(variance + share * (1 - share) / n + _moving_mean(removed**2)))


class _InBlocks:
    """A matrix that is applied to so many rows, in blocks of columns.

    Each product is small enough for one thread. The result is then the same on any number of cores, and threads of
    other processes do not slow each other down.
    """

    def __init__(self, matrix: Floats, rows: int) -> None:
        k = len(matrix)
        width = max(1, min(k, ONE_THREAD // (rows * k)))

        def blocks(square: Floats) -> Floats:
            padded = np.pad(square, ((0, 0), (0, -k % width)))
            return np.ascontiguousarray(padded.reshape(k, -1, width).transpose(1, 0, 2))

        self._forward, self._backward = blocks(matrix), blocks(matrix.T)

    def support(self, frequencies: Floats) -> Floats:
        return self._times(frequencies, self._forward)

    def back(self, votes: Floats) -> Floats:
        return self._times(votes, self._backward)

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
