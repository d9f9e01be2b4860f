"""What `drawing` does for many rows: loops compiled by numba at their first call and kept for the next process.

Indices are unsigned because numba then leaves out the test for negative ones.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Mask, Whole, Words
from protocols.arrays.compiling import compiled

ZERO, ONE, TWO, THREE, SEVEN, HALF = (np.uint64(number) for number in (0, 1, 2, 3, 7, 32))
Index = int | np.uint64


@compiled
def fill_counters(devices: Words, tweaks: Whole, first: int, count: int, counters: Words) -> None:
    """The counter blocks of each row; with a `count` of words those of the stream that eight neighbours share.

    A row's first block is outside the loop over its others: often there is no other, and then a loop over all would
    take twice as long.
    """
    flat, blocks, at = counters.reshape(-1), np.uint64(counters.shape[1]), ZERO
    for row in range(np.uint64(len(devices))):
        device, tail = devices[row], np.uint64(np.uint32(tweaks[row])) | np.uint64(first) << HALF
        if count:
            tail += (device & SEVEN) * np.uint64(count) >> THREE << HALF
            device >>= THREE
        flat[at], flat[at + ONE] = device, tail
        at += TWO
        for _ in range(ONE, blocks):
            tail += ONE << HALF
            flat[at], flat[at + ONE] = device, tail
            at += TWO


@compiled
def fill_further(devices: Words, tweaks: Whole, first: int, left: Whole, count: int, counters: Words) -> None:
    """counters[i] = (device, tweak | (first + place) << 32), of the row and the place in it that left[i] names."""
    for i in range(len(left)):
        row, place = np.uint64(left[i]) // np.uint64(count), np.uint64(left[i]) % np.uint64(count)
        counters[i, 0] = devices[row]
        counters[i, 1] = np.uint64(np.uint32(tweaks[row])) | (np.uint64(first) + place) << HALF


@compiled
def extremes(devices: Words) -> tuple[int, int, bool]:
    """The lowest and the highest device, and whether they are numbered in a row."""
    first, off = devices[0], ZERO
    for row in range(len(devices)):
        off |= (devices[row] - first) ^ np.uint64(row)
    if off == ZERO:
        return first, devices[-1], True
    low, high = first, first
    for row in range(len(devices)):
        low, high = min(low, devices[row]), max(high, devices[row])
    return low, high, False


@compiled
def look_up(words: Whole, slots: Whole, filled: int, first: Index, flat: Whole, left: Whole, found: int) -> int:
    """Symbols = slots[0, words], from place `first` on among those of all rows.

    Places of words that are `filled` or more are written to `left` after those that were found before; returned is how
    many there are now.
    """
    table, place = slots[0], np.uint64(first)
    for at in range(np.uint64(len(words))):
        flat[place + at] = table[words[at]]
        if words[at] >= filled:
            left[found] = place + at
            found += 1
    return found


@compiled
def start_of(row: int, device: np.uint64, base: int, apart: int, within: int, count: int) -> np.uint64:
    """Where the words of a row begin, as `drawing.Starts` says."""
    inside = (device - np.uint64(base)) * np.uint64(count) & np.uint64(within)
    return np.uint64(row) * np.uint64(apart) + inside


@compiled
def look_up_from(
    devices: Words,
    base: int,
    apart: int,
    within: int,
    words: Whole,
    slots: Whole,
    filled: int,
    first: int,
    symbols: Whole,
    left: Whole,
    found: int,
) -> int:
    """As `look_up`, from row `first` on, where each row's words begin at a place of their own (`drawing.Starts`)."""
    count, table = symbols.shape[1], slots[0]
    if count == 1:
        some = symbols.reshape(-1)[first:]
        for row in range(len(devices)):
            word = words[start_of(row, devices[row], base, apart, within, 1)]
            some[row] = table[word]
            if word >= filled:
                left[found] = first + row
                found += 1
        return found
    for row in range(len(devices)):
        start = start_of(row, devices[row], base, apart, within, count)
        for i in range(count):
            word = words[start + np.uint64(i)]
            symbols[np.uint64(first) + np.uint64(row), i] = table[word]
            if word >= filled:
                left[found] = (first + row) * count + i
                found += 1
    return found


@compiled
def look_up_again(
    cells: Whole,
    there: Mask,
    devices: Words,
    base: int,
    apart: int,
    within: int,
    words: Whole,
    slots: Whole,
    first: int,
    symbols: Whole,
) -> None:
    """After `look_up` or `look_up_from`: symbol cell // 8 = slots[1 + cell % 8, word] where the cell is there."""
    count = symbols.shape[1]
    for i in range(len(devices)):
        row = np.uint64(first) + np.uint64(i)
        if there[row]:
            place, kind = np.uint64(cells[row]) >> THREE, ONE + (np.uint64(cells[row]) & SEVEN)
            start = start_of(i, devices[i], base, apart, within, count)
            symbols[row, place] = slots[kind, words[start + place]]


@compiled
def resolve(cuts: Words, left: Whole, words: Words, cells: Whole, there: Mask, symbols: Whole) -> None:
    """Some symbols, each named by its place among those of all rows: how many cuts of its kind its word is not below.

    Kinds are as in `look_up_again`; without cells, all are of the first kind.
    """
    count = np.uint64(symbols.shape[1])
    for i in range(len(left)):
        row, place, kind = np.uint64(left[i]) // count, np.uint64(left[i]) % count, ZERO
        if len(cells) and there[row] and np.uint64(cells[row]) >> THREE == place:
            kind = ONE + (np.uint64(cells[row]) & SEVEN)
        symbols[row, place] = np.searchsorted(cuts[kind], words[i], side="right")


@compiled
def clear(column: Whole, spare: int) -> None:
    """Clear the spare bits of each row's last symbol."""
    rows, count = column.shape
    for row in range(rows):
        column[row, count - 1] &= ~np.uint64(spare)


@compiled
def shift(cells: Whole, shifts: Whole, k: int) -> None:
    """shifts = cells + shifts, less k where that is k or more: there the difference is the smaller number."""
    for row in range(len(cells)):
        total = np.uint32(np.uint32(cells[row]) + np.uint32(shifts[row]))
        less = np.uint32(total - np.uint32(k))
        shifts[row] = less if less < total else total


@compiled
def invert(cuts: Words, rows: Whole, words: Words, symbols: Whole) -> None:
    """symbols = how many cuts of its row each word is not below."""
    for i in range(len(words)):
        symbols[i] = np.searchsorted(cuts[rows[i]], words[i], side="right")
