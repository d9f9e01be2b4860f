"""The same supports as `hash_counting`, by a Fourier transform: where a counter for each hash and symbol is too much.

With w = exp(2 pi i / g), an answer (hash x, symbol y) supports the value v as often as 1/g times the sum of
w^(c (x·v - y)) over c = 0 .. g - 1. For c = 0 that is 1. The rest is a Fourier transform over all vectors of digits, at
v, of w^(-c y) at the vector c x. Supports are whole numbers, so the sums are rounded: results are exact, and the same
on every machine. For that they must be near whole numbers. With n answers, N vectors and u = 2^-53, a support errs by

- adding up: a vector gets at most n numbers of length 1, an addition errs by at most n u, and each of n answers is
  added to g - 1 vectors. That is at most 1.5 n^2 u: 0.05 for the `MOST_AT_ONCE` answers of a part, if all are the same.
- transforming: for each digit at most 4 g^1.5 u of the length of the result, even if its g terms are added one by one.
  That length is at most n g sqrt(N). So it is at most 4 digits g^1.5 n sqrt(N) u: 0.04 for 53^4 vectors.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Column, Counts, Floats
from protocols.arrays.counting import frozen

MOST_AT_ONCE = 1 << 24
NEAR = 0.25


def supports_by_waves(answers: Column, g: int, digits: int, k: int) -> Counts:
    """How many of some answers `hash * g + symbol` support each value 0 .. k - 1; ValueError if one is none.

    >>> supports_by_waves(np.array([0 * 2 + 0, 1 * 2 + 1], dtype=np.uint8), 2, 1, 2).tolist()
    [1, 2]
    """
    supports = np.zeros(k, dtype=np.int64)
    for start in range(0, len(answers), MOST_AT_ONCE):
        part = answers[start : start + MOST_AT_ONCE]
        sums = (_transformed(part, g, digits)[:k] + len(part)) / g
        nearest = np.rint(sums)
        if np.abs(sums - nearest).max() > NEAR:
            raise ArithmeticError("supports are not near whole numbers: the Fourier transform is not exact enough")
        supports += nearest.astype(np.int64)
    return supports


def _transformed(answers: Column, g: int, digits: int) -> Floats:
    """The transform is real, so the spectrum is made for half of the last digits only."""
    from protocols.arrays.hash_counting_loops import spread

    turns = np.exp(-2j * np.pi / g * np.arange(g))
    half = np.zeros((g,) * (digits - 1) + (g // 2 + 1,), dtype=np.complex128)
    if not spread(frozen(answers), turns, half.reshape(-1), g, digits):
        raise ValueError(f"an answer is not one of 0..{g ** (digits + 1) - 1}")
    for axis in range(digits - 1):  # one after the other: no more than two arrays are in memory
        half = np.fft.ifft(half, axis=axis, norm="forward")
    return np.fft.irfft(half, n=g, norm="forward").reshape(-1)
