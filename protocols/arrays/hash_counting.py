"""Which values are supported by answers that are hashes and symbols: of all values at once, by a Fourier transform.

A value is a vector of digits of base g, a hash is one too, and it sends the value to their inner product modulo g. An
answer (hash x, symbol y) supports every value v with x·v = y. With w = exp(2 pi i / g), it does so as often as 1/g
times the sum of w^(c (x·v - y)) over c = 0 .. g - 1. For c = 0 that is 1. The rest is a Fourier transform over all
vectors of digits, at v, of w^(-c y) at the vector c x. Supports are whole numbers, so the sums are rounded: results are
exact, and the same on every machine. For that they must be near whole numbers. With n answers, N vectors and
u = 2^-53, a support errs by

- adding up: a vector gets at most n numbers of length 1, an addition errs by at most n u, and each of n answers is
  added to g - 1 vectors. That is at most 1.5 n^2 u: 0.0002 for the `MOST_AT_ONCE` answers of a part, if all are the
  same.
- transforming: for each digit at most 4 g^1.5 u of the length of the result, even if its g terms are added one by one.
  That length is at most n g sqrt(N). So it is at most 4 digits g^1.5 n sqrt(N) u: 0.003 for 53^4 vectors.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Column, Counts, Floats

MOST_AT_ONCE = 1 << 20
NEAR = 0.25


def supports_of(answers: Column, g: int, digits: int, k: int) -> Counts:
    """How many of some answers `hash * g + symbol` support each value 0 .. k - 1; ValueError if one is none.

    >>> supports_of(np.array([0 * 2 + 0, 1 * 2 + 1], dtype=np.uint8), 2, 1, 2).tolist()
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
    if int(answers.max()) >= g ** (digits + 1):
        raise ValueError(f"an answer is not one of 0..{g ** (digits + 1) - 1}")
    hashes, symbols = np.divmod(answers.astype(np.int64), g)
    shape, turns = (g,) * (digits - 1) + (g // 2 + 1,), np.exp(-2j * np.pi / g * np.arange(g))
    half = np.zeros(shape, dtype=np.complex128)
    flat, alone = half.reshape(-1), hashes == 0
    flat[0] = np.where(symbols[alone] == 0, g - 1, -1).sum()  # the hash 0 is at the place 0 for all c
    vectors, symbols = np.stack(np.unravel_index(hashes[~alone], (g,) * digits)), symbols[~alone]
    for c in range(1, g):
        turned = vectors * c % g
        there = np.flatnonzero(turned[-1] <= g // 2)
        np.add.at(flat, np.ravel_multi_index(tuple(turned[:, there]), shape), turns[symbols[there] * c % g])
    for axis in range(digits - 1):  # one after the other: no more than two arrays are in memory
        half = np.fft.ifft(half, axis=axis, norm="forward")
    return np.fft.irfft(half, n=g, norm="forward").reshape(-1)
