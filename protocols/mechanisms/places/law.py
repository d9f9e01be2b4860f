"""The displacement law of places on a grid, in whole numbers (PROTOCOLS 10).

A cell is displaced by (a, b) columns and rows with a chance proportional to e^(-rate r), r = sqrt(a^2 + b^2), and a
place outside the grid is moved to the nearest cell inside. On a grid of C columns every displacement by C - 1 columns
or more ends in the same column, so the law is folded: the outermost displacements have the chances of all that are
larger. The table is finite, and nothing is cut off.

The same basic operations, in the same order, give the same integers on every machine and in every language: +, *, the
square root and a polynomial. No library's exponential is called.
"""

from functools import lru_cache
from itertools import accumulate
from math import ceil

import numpy as np
from numpy.typing import NDArray

from hearsay_device.draws import COEFFICIENTS, INVERSE_LN2, WORD
from protocols.arrays.aliases import Floats, Words

ANYWHERE = 1 << 24
"""Of 2^64: the chance of each cell to be reported whatever the truth is.

It keeps the promise exact although the table has whole numbers: what rounding changes is 2^-62, far below this.
"""
LEAST_RATE, MOST_RATE = 0.05, 20.0
"""Per cell side: below, cells are too small for the noise; above, nothing is protected."""
_BITS = 62  # all weights together stay below 2^62
_SQRT_2 = 1.4142135623730951
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # their sum is ln 2; the first has spare bits


def falling(x: Floats) -> tuple[Floats, Floats]:
    """e^-x as (m, n), which stand for m 2^-n.

    >>> m, n = falling(np.array([0.0, 1.0, 30.0]))
    >>> np.abs(np.ldexp(m, -n.astype(int)) / np.exp([-0.0, -1.0, -30.0]) - 1).max() < 1e-15
    np.True_
    """
    n = np.floor(x * INVERSE_LN2)
    rest = (x - n * _LN2_HIGH) - n * _LN2_LOW
    total = np.zeros_like(x)
    for coefficient in reversed(COEFFICIENTS):
        total = total * rest + coefficient
    return total, n


@lru_cache(maxsize=32)
def weights(columns: int, rows: int, rate: float) -> NDArray[np.int64]:
    """The folded law, [row, column] of the displacement from (-(rows - 1), -(columns - 1)) on; not divided by its sum.

    >>> table = weights(3, 2, 1.0)
    >>> table.shape, bool((table == table[::-1, ::-1]).all()), int(table.argmax())
    ((3, 5), True, 7)
    """
    bound = 1 + 2 * _SQRT_2 / rate
    bits = _BITS - int(bound * bound + 1).bit_length()
    reach = ceil(bits / INVERSE_LN2 / rate) + 1  # beyond, a weight is 0
    distances = np.arange(reach + 1, dtype=np.float64)
    squares = distances * distances
    mantissa, power = falling(rate * np.sqrt(squares[:, None] + squares))
    quadrant = np.floor(np.ldexp(mantissa, (bits - power).astype(np.int64))).astype(np.int64)
    quadrant = np.pad(quadrant, ((0, max(0, rows - 1 - reach)), (0, max(0, columns - 1 - reach))))
    folded = np.concatenate([quadrant[:, : columns - 1], quadrant[:, columns - 1 :].sum(axis=1)[:, None]], axis=1)
    folded = np.concatenate([folded[: rows - 1], folded[rows - 1 :].sum(axis=0)[None]])
    table = np.concatenate([folded[:0:-1], folded])
    table = np.concatenate([table[:, :0:-1], table], axis=1)
    table.flags.writeable = False
    return table


@lru_cache(maxsize=32)
def cuts(columns: int, rows: int, rate: float) -> Words:
    """Where [0, 2^64) is cut: a piece for each displacement, row by row, and the last one for a cell drawn evenly."""
    table = weights(columns, rows, rate)
    total = int(table.sum())
    share = WORD - ANYWHERE * columns * rows
    found = np.array([running * share // total for running in accumulate(table.ravel().tolist())], dtype=np.uint64)
    found.flags.writeable = False
    return found
