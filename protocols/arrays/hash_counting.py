"""Which values are supported by answers that are hashes and symbols: of all values at once, in whole numbers.

A value is a vector of digits of base g, a hash is one too, and it sends the value to their inner product modulo g. An
answer (hash x, symbol y) supports every value v with x·v = y. So the supports of all values are

    S[v] = sum over x of C[x, x·v]

where C counts the answers. One digit of x is exchanged for one of v at a time: that is the Walsh-Hadamard transform for
g = 2, and its like for any other g. It only adds, so the results are exact and the same on every machine.

C has all pairs of a hash and a symbol. Where they are more than `MOST_COUNTERS`, `hash_waves` counts without it.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Column, Counts
from protocols.arrays.counting import frozen
from protocols.arrays.hash_waves import supports_by_waves

MOST_COUNTERS = 1 << 25
"""Of pairs of a hash and a symbol, of 4 bytes each: all of them are in memory while supports are counted."""


def supports_of(answers: Column, g: int, digits: int, k: int) -> Counts:
    """How many of some answers `hash * g + symbol` support each value 0 .. k - 1; ValueError if one is none.

    >>> supports_of(np.array([0 * 2 + 0, 1 * 2 + 1], dtype=np.uint8), 2, 1, 2).tolist()
    [1, 2]
    """
    add_up = supports_by_waves if g ** (digits + 1) > MOST_COUNTERS else supports_by_counters
    return add_up(answers, g, digits, k)


def supports_by_counters(answers: Column, g: int, digits: int, k: int) -> Counts:
    """The same with a table of all pairs of a hash and a symbol."""
    from protocols.arrays.hash_counting_loops import exchange, gather

    size = g ** (digits + 1)
    if len(answers) >= 1 << 31:
        raise ValueError("2^31 answers or more at once")
    table = np.zeros(size, dtype=np.int32)
    if not gather(frozen(answers), table):
        raise ValueError(f"an answer is not one of 0..{size - 1}")
    exchange(table, g, digits)
    return table[: k * g : g].astype(np.int64)
