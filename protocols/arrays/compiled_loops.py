"""The loops that count answers, compiled: a fifth of the time that numpy takes for it.

Import this module at the first use and not before: importing numba takes longer than most commands do.
"""

import numpy as np

from protocols.arrays.aliases import Bytes, Column, Counts, Whole, Words
from protocols.arrays.compiling import compiled, frozen

LANES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype("<u2").view("<u8")
"""Of each byte, its bits as numbers of 16 bits, four in a word: words are added, as often as a number has room."""
MOST_ADDED = (1 << 16) - 1


def tally(symbols: Column, groups: Whole, counts: Counts) -> bool:
    """Count the symbols of each group; False if one of either is out of range."""
    return bool(_tally(frozen(symbols), frozen(groups), counts))


def add_bits(packed: Bytes, groups: Whole, counts: Counts) -> bool:
    """Count the bits of each group's rows; False if a group is out of range. Spare bits are counted, too."""
    size, width = len(counts), packed.shape[1]
    for start in range(0, len(packed), MOST_ADDED):
        rows = slice(start, start + MOST_ADDED)
        sums = np.zeros((size, width, 2), dtype=np.uint64)
        if not _add_lanes(frozen(packed[rows]), frozen(groups[rows]), LANES, sums):
            return False
        counts += sums.view("<u2").reshape(size, -1)
    return True


@compiled
def _tally(symbols: Column, groups: Whole, counts: Counts) -> bool:
    size, k = counts.shape
    for row in range(len(symbols)):
        group, symbol = np.int64(groups[row]), np.int64(symbols[row])
        if not (0 <= group < size and 0 <= symbol < k):
            return False
        counts[group, symbol] += 1
    return True


@compiled
def _add_lanes(packed: Bytes, groups: Whole, lanes: Words, sums: Words) -> bool:
    """Add up what the bytes of each group's rows stand for, byte by byte; False if a group is out of range."""
    size = len(sums)
    for row in range(len(packed)):
        group = np.int64(groups[row])
        if not 0 <= group < size:
            return False
        for place in range(packed.shape[1]):
            byte = packed[row, place]
            sums[group, place, 0] += lanes[byte, 0]
            sums[group, place, 1] += lanes[byte, 1]
    return True
