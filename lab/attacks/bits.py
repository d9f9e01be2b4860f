"""A small classifier of bytes: which of two values did their sender have? It is not told where to look.

Bytes and numbers become bits (numbers by their ranks). A classifier learns from some of the devices how often each bit
is set under heads and under tails, and keeps the bits that differ most. The others are scored by the sum of the kept
bits' log-ratios, as if bits were independent. Bits that tell something only together, two by two, are not noticed.
"""

from collections.abc import Sequence
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Bytes, Floats, Mask

SPARE = 1.0  # how far above what chance makes of the best bit a bit must be, to be kept beside a better one


def padded(texts: Sequence[bytes]) -> Bytes:
    """Texts as rows of bytes, filled up with zeros."""
    width = max(1, *map(len, texts))
    return np.frombuffer(b"".join(text.ljust(width, b"\0") for text in texts), np.uint8).reshape(len(texts), width)


def bits_of_bytes(rows: Bytes) -> tuple[Bytes, list[str]]:
    """The bits of bytes that are not the same in all rows, and their names."""
    varied = np.flatnonzero(np.ptp(rows, axis=0))
    names = [f"bit {bit} of byte {byte}" for byte in varied for bit in range(7, -1, -1)]
    return np.unpackbits(rows[:, varied], axis=1), names


def bits_of_numbers(column: NDArray[Any]) -> tuple[Bytes, list[str]]:
    """The bits of the numbers' ranks, as one byte: its first bit is set in the larger half."""
    ranks = np.searchsorted(np.sort(column), column)
    return bits_of_bytes((ranks[:, None] * 256 // len(column)).astype(np.uint8))


class Classifier:
    """What bits say about a coin, learnt from rows whose coins are known."""

    def __init__(self, bits: Bytes, coins: Mask) -> None:
        heads, tails = ((bits[side].sum(axis=0) + 0.5) / (side.sum() + 1) for side in (coins, ~coins))
        both = (bits.sum(axis=0) + 0.5) / (len(bits) + 1)
        error = np.sqrt(both * (1 - both) * (1 / (coins.sum() + 1) + 1 / ((~coins).sum() + 1)))
        apart = np.abs(heads - tails) / error
        self.best = int(np.argmax(np.append(apart, 0.0)))
        self._kept = np.flatnonzero(apart >= min(apart.max(initial=0.0), sqrt(2 * log(len(apart) + 1)) + SPARE))
        self._set = np.log(heads / tails)[self._kept]
        self._unset = np.log((1 - heads) / (1 - tails))[self._kept]

    def scores(self, bits: Bytes) -> Floats:
        """ln of how much likelier each row is under heads."""
        return np.asarray(np.where(bits[:, self._kept], self._set, self._unset).sum(axis=1))


def chance_of_luck(guesses: Mask, coins: Mask) -> float:
    """How often as many guesses are right, or more, if coins are dealt to devices at random.

    This is the permutation test of the number of right guesses, without drawing permutations.

    >>> coins = np.arange(20) < 10
    >>> f"{chance_of_luck(coins, coins):.1g}", chance_of_luck(~coins, coins)
    ('5e-06', 1.0)
    """
    from scipy.stats import hypergeom  # takes over a second to import

    both = int((guesses & coins).sum())
    return float(hypergeom.sf(both - 1, len(coins), int(coins.sum()), int(guesses.sum())))
