"""Expectation-maximisation that stops early, for mechanisms that confuse neighbours (PROTOCOLS 6 and 10).

The number of steps is chosen without looking at the truth: ten parts of the reports are held out in turn. Every report
is held out once: with single draws of a tenth, an unlucky one may stop so early that errors double. The same counts are
divided alike.
"""

from hashlib import sha256
from typing import Protocol

import numpy as np

from protocols.arrays import Floats, Whole

PARTS = 10  # each is held out once
TINY = 1e-300


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
