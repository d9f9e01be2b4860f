"""The loops behind `hash_counting` and `hash_waves`, compiled by numba at their first call and kept for later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from protocols.arrays.aliases import Column
from protocols.arrays.compiling import compiled

Small = NDArray[np.int32]
Spectrum = NDArray[np.complex128]


@compiled
def gather(answers: Column, table: Small) -> bool:
    """Count answers; False if one is out of range."""
    for row in range(len(answers)):
        if not 0 <= answers[row] < len(table):
            return False
        table[answers[row]] += 1
    return True


@compiled
def exchange(table: Small, g: int, digits: int) -> None:
    """Turn table[x, y] in place into table[v, s]: the sum over x of table[x, s + x·v].

    Rows that differ in one digit a of x, each with its g symbols, become rows that differ in one digit of v: row v is
    the sum of the rows a, each turned by a times v. They are held twice in a row, so that a turned one is a slice.
    """
    twice = np.zeros((g, 2 * g), dtype=np.int32)
    stride = len(table) // g
    for _ in range(digits):
        for outer in range(0, len(table), stride * g):
            for start in range(outer, outer + stride, g):
                for a in range(g):
                    for y in range(g):
                        found = table[start + a * stride + y]
                        twice[a, y] = found
                        twice[a, y + g] = found
                for v in range(g):
                    row = start + v * stride
                    for s in range(g):
                        table[row + s] = twice[0, s]
                    turned = 0
                    for a in range(1, g):
                        turned += v
                        if turned >= g:
                            turned -= g
                        for s in range(g):
                            table[row + s] += twice[a, turned + s]
        stride //= g


@compiled
def spread(answers: Column, turns: Spectrum, half: Spectrum, g: int, digits: int) -> bool:
    """Add to half[c x] the turn by -c y, for each answer (x, y) and each c = 1 .. g - 1; False if one is out of range.

    Only places whose last digit is at most g // 2 are there. The hash 0 is at the place 0 for all c: its turns add up
    to a whole number.
    """
    width = g // 2 + 1
    x, turned = np.zeros(digits, dtype=np.int64), np.zeros(digits, dtype=np.int64)
    for row in range(len(answers)):
        rest, y = np.int64(answers[row]) // g, np.int64(answers[row]) % g
        if rest == 0:
            half[0] += g - 1 if y == 0 else -1
            continue
        for digit in range(digits - 1, -1, -1):
            x[digit] = turned[digit] = rest % g
            rest //= g
        if rest != 0:
            return False
        turn = y
        for _ in range(1, g):
            if turned[digits - 1] < width:
                place = 0
                for digit in range(digits - 1):
                    place = place * g + turned[digit]
                half[place * width + turned[digits - 1]] += turns[turn]
            turn += y
            if turn >= g:
                turn -= g
            for digit in range(digits):
                turned[digit] += x[digit]
                if turned[digit] >= g:
                    turned[digit] -= g
    return True
