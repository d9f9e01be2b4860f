"""The loops behind `counting`, compiled by numba at their first call and kept for the next process.

Bits are added 64 at a time by a carry-save adder. Three words become a sum and a carry in five operations, for 64
places at once; eight rows so become carries of weight 8, and those are added like ones into a binary counter, each
level of which holds a sum and perhaps a word that waits for another. Bits are looked at one by one only at the end.

Eight rows of w bytes are w words without a gap. Where many rows are in one group, these are added. Each of the w words
has an adder of its own (a lane), and the same is done in every lane: the compiler makes vector instructions of it.

Indices are unsigned because numba then leaves out the test for negative ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from protocols.arrays.aliases import Bytes, Counts, Whole, Words
from protocols.arrays.compiling import address_of, compiled

ZERO, ONE, EIGHT = np.uint64(0), np.uint64(1), np.uint64(8)
BLOCK = 64  # rows: eight times eight


@compiled
def tally(symbols: Whole, groups: Whole, counts: Counts) -> bool:
    """Count symbols by group; False if one of either is out of range."""
    size, k = counts.shape
    for row in range(len(symbols)):
        group, symbol = groups[row], symbols[row]
        if not (0 <= group < size and 0 <= symbol < k):
            return False
        counts[group, symbol] += 1
    return True


@compiled
def by_group(groups: Whole, free: Counts) -> Words:
    """The rows in the order of their groups; `free` is where each group starts, and is used up."""
    order = np.empty(len(groups), dtype=np.uint64)
    for row in range(len(groups)):
        group = groups[row]
        order[free[group]] = row
        free[group] += 1
    return order


def _load_word(typing: Any, data: Any, place: Any) -> Any:
    """Eight bytes from any place, aligned or not, as one word: LLVM can express this, numba cannot."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(address_of(context, builder, signature, arguments, 64))
        word.align = 1
        return word

    return types.uint64(data, types.uint64), generate


def _store_word(typing: Any, data: Any, place: Any, word: Any) -> Any:
    """Eight bytes to any place, aligned or not."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], address_of(context, builder, signature, arguments, 64), align=1)
        return context.get_dummy_value()

    return types.void(data, types.uint64, types.uint64), generate


load_word: Any = intrinsic(_load_word)
store_word: Any = intrinsic(_store_word)


@compiled
def word_at(data: Bytes, place: np.uint64) -> np.uint64:
    """Eight bytes from any place, with zeros beyond the end."""
    if place + EIGHT <= np.uint64(len(data)):
        found: np.uint64 = load_word(data, place)
        return found
    word = ZERO
    for i in range(np.uint64(len(data)) - place):
        word |= np.uint64(data[place + np.uint64(i)]) << np.uint64(8 * i)
    return word


def _ones(typing: Any, word: Any) -> Any:
    """How many bits of a word are set: one instruction, for which numba has no call."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


ones_of: Any = intrinsic(_ones)


@compiled
def tally_ones(data: Bytes, width: int, counts: Counts) -> bool:
    """Count rows of `width` bytes by how many of their bits are set; False if a row has more than can be counted."""
    size = np.uint64(width)
    whole = size // EIGHT * EIGHT
    rest = (ONE << (EIGHT * (size - whole))) - ONE  # of the last word: the bits that belong to this row
    for row in range(np.uint64(len(data)) // size):
        ones, start = ZERO, np.uint64(row) * size
        for byte in range(ZERO, whole, EIGHT):
            ones += ones_of(load_word(data, start + np.uint64(byte)))
        if rest:
            ones += ones_of(word_at(data, start + whole) & rest)
        if ones >= np.uint64(len(counts)):
            return False
        counts[ones] += 1
    return True


@compiled
def full_add(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The sum and the carry of three words, place by place."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@compiled
def spread(word: np.uint64, level: int, counts: Counts) -> None:
    """Add 2^level to the count of each bit that is set."""
    for bit in range(min(64, len(counts))):
        counts[bit] += np.int64((word >> np.uint64(bit)) & ONE) << level


@compiled
def add_eight(sums: Words, lane: np.uint64, data: Bytes, place: np.uint64, apart: np.uint64) -> np.uint64:
    """Add eight words, `apart` bytes from each other, to the ones, twos and fours of a lane; returned is the carry."""
    ones, two = full_add(sums[0, lane], load_word(data, place), load_word(data, place + apart))
    place += apart + apart
    ones, too = full_add(ones, load_word(data, place), load_word(data, place + apart))
    twos, four = full_add(sums[1, lane], two, too)
    place += apart + apart
    ones, two = full_add(ones, load_word(data, place), load_word(data, place + apart))
    place += apart + apart
    ones, too = full_add(ones, load_word(data, place), load_word(data, place + apart))
    twos, also = full_add(twos, two, too)
    fours, carry = full_add(sums[2, lane], four, also)
    sums[0, lane], sums[1, lane], sums[2, lane] = ones, twos, fours
    return carry


@compiled
def add_blocks(data: Bytes, width: int, counts: Counts) -> None:
    """Count bits of rows of `width` bytes, `BLOCK` rows at a time; rows that are no whole block are left out."""
    lanes, apart = np.uint64(width), EIGHT * np.uint64(width)
    blocks, levels = len(data) // (BLOCK * width), 1
    while blocks >> levels:
        levels += 1
    sums = np.zeros((3 + levels, width), dtype=np.uint64)
    waiting = np.zeros((levels, width), dtype=np.uint64)
    for block in range(blocks):
        full = 0
        while (block >> full) & 1:
            full += 1
        carries, start = waiting[full], np.uint64(block) * EIGHT * apart
        for lane in range(lanes):
            carries[lane] = add_eight(sums, np.uint64(lane), data, start + EIGHT * np.uint64(lane), apart)
        for level in range(full):
            added, words = sums[3 + level], waiting[level]
            for lane in range(lanes):
                added[lane], carries[lane] = full_add(added[lane], words[lane], carries[lane])
    found = np.zeros(64 * width, dtype=np.int64)
    for lane in range(width):
        places = found[64 * lane :]
        for level in range(3 + levels):
            spread(sums[level, lane], level, places)
        for level in range(levels):
            if (blocks >> level) & 1:
                spread(waiting[level, lane], level + 3, places)
    for row in range(8):
        for bit in range(len(counts)):
            counts[bit] += found[8 * width * row + bit]


@compiled
def add_up(data: Bytes, width: int, order: Words, ends: Counts, counts: Counts) -> None:
    """Count bits by group: rows of `width` bytes; group g has rows order[ends[g-1]:ends[g]], or all in order."""
    levels = 1
    while ends[-1] >> levels:
        levels += 1
    sums, waiting = np.zeros(levels, dtype=np.uint64), np.zeros(levels, dtype=np.uint64)
    rows = np.zeros(8, dtype=np.uint64)
    start = 0
    for group in range(len(counts)):
        count = ends[group] - start
        blocks = (count + 7) // 8
        for byte in range(0, width, 8):
            ones, twos, fours = ZERO, ZERO, ZERO
            sums[:] = ZERO
            for block in range(blocks):
                for i in range(8):
                    rows[i] = ZERO
                    if 8 * block + i < count:
                        row = np.uint64(start + 8 * block + i)
                        row = order[row] if len(order) else row
                        rows[i] = word_at(data, row * np.uint64(width) + np.uint64(byte))
                ones, two = full_add(ones, rows[0], rows[1])
                ones, too = full_add(ones, rows[2], rows[3])
                twos, four = full_add(twos, two, too)
                ones, two = full_add(ones, rows[4], rows[5])
                ones, too = full_add(ones, rows[6], rows[7])
                twos, also = full_add(twos, two, too)
                fours, carry = full_add(fours, four, also)
                level = 0
                while (block >> level) & 1:  # as in a binary counter: here a word is waiting
                    sums[level], carry = full_add(sums[level], waiting[level], carry)
                    level += 1
                waiting[level] = carry
            places = counts[group, 8 * byte :]
            spread(ones, 0, places)
            spread(twos, 1, places)
            spread(fours, 2, places)
            for level in range(levels):
                if blocks >> level > 1:
                    spread(sums[level], level + 3, places)
                if (blocks >> level) & 1:
                    spread(waiting[level], level + 3, places)
        start = ends[group]
