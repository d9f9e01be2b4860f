"""What `drawing` does for many rows: loops compiled by numba at their first call and kept for the next process.

Indices are unsigned because numba then leaves out the test for negative ones. A row's first block and first word are
outside the loop over its others: often there is no other, and then a loop over all would take twice as long.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Mask, Whole, Words
from protocols.arrays.compiling import compiled

ZERO, ONE, TWO, THREE, FOUR, SEVEN, HALF = (np.uint64(number) for number in (0, 1, 2, 3, 4, 7, 32))
SOME = 512  # rows


@compiled
def cuts_below(cuts: Words, word: np.uint64) -> np.uint64:
    """How many cuts a word is not below. A branch on a comparison would be guessed wrong half of the time."""
    low, size = ZERO, len(cuts)
    while size > 0:
        half = (size + 1) >> 1
        low += np.uint64(half) * np.uint64(cuts[low + np.uint64(half - 1)] <= word)
        size >>= 1
    return low


@compiled
def fill_counters(devices: Words, tweaks: Whole, first: int, counters: Words) -> None:
    """counters[row, i] = (device, tweak | (first + i) << 32): what the keystream encrypts."""
    rows, count, _ = counters.shape
    for row in range(rows):
        device, tail = devices[row], np.uint64(np.uint32(tweaks[row])) | np.uint64(first) << HALF
        counters[row, 0, 0], counters[row, 0, 1] = device, tail
        for i in range(1, count):
            tail += ONE << HALF
            counters[row, i, 0], counters[row, i, 1] = device, tail


@compiled
def fill_streams(group: int | np.uint64, tail: int, counters: Words) -> None:
    """counters[row, i] = (group + row, tail + (i << 32))"""
    rows, count, _ = counters.shape
    for row in range(rows):
        for i in range(count):
            counters[row, i, 0] = np.uint64(group) + np.uint64(row)
            counters[row, i, 1] = np.uint64(tail) + (np.uint64(i) << HALF)


@compiled
def fill_shared(devices: Words, tweaks: Whole, first: int, count: int, counters: Words) -> None:
    """counters[row, i] = (device // 8, tweak | (first + i) << 32), i from the block with the device's first word on."""
    rows, blocks, _ = counters.shape
    if blocks == 1:
        flat = counters.reshape(-1)
        for row in range(rows):
            before = (devices[row] & SEVEN) * np.uint64(count) >> THREE
            flat[TWO * np.uint64(row)] = devices[row] >> THREE
            flat[TWO * np.uint64(row) + ONE] = np.uint64(np.uint32(tweaks[row])) | (np.uint64(first) + before) << HALF
        return
    for row in range(rows):
        before, group = (devices[row] & SEVEN) * np.uint64(count), devices[row] >> THREE
        tail = np.uint64(np.uint32(tweaks[row])) | (np.uint64(first) + (before >> THREE)) << HALF
        counters[row, 0, 0], counters[row, 0, 1] = group, tail
        for i in range(1, blocks):
            tail += ONE << HALF
            counters[row, i, 0], counters[row, i, 1] = group, tail


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
    low, high, off = devices[0], devices[0], ZERO
    for row in range(len(devices)):
        low, high = min(low, devices[row]), max(high, devices[row])
        off |= (devices[row] - devices[0]) ^ np.uint64(row)
    return low, high, off == ZERO


@compiled
def are_same(devices: Words, others: Words) -> bool:
    """Whether two columns of equal length are the same."""
    differing = ZERO
    for row in range(len(devices)):
        differing |= devices[row] ^ others[row]
    return bool(differing == ZERO)


@compiled
def look_up(words: Whole, slots: Whole, filled: int, first: int, symbols: Whole, left: Whole, found: int) -> int:
    """symbols = slots[0, words], from place `first` on.

    Places of words that are `filled` or more are written to `left` after those that were found before; returned is how
    many there are now. Four words at a time take two thirds of the time.
    """
    flat, table = symbols.reshape(-1), slots[0]
    place, fours = np.uint64(first), np.uint64(len(words)) >> TWO
    for four in range(fours):
        i = np.uint64(four) << TWO
        a, b, c, d = words[i], words[i + ONE], words[i + TWO], words[i + THREE]
        flat[place], flat[place + ONE], flat[place + TWO], flat[place + THREE] = table[a], table[b], table[c], table[d]
        if a >= filled:
            left[found] = place
            found += 1
        if b >= filled:
            left[found] = place + ONE
            found += 1
        if c >= filled:
            left[found] = place + TWO
            found += 1
        if d >= filled:
            left[found] = place + THREE
            found += 1
        place += FOUR
    for last in range(fours << TWO, len(words)):
        flat[place] = table[words[last]]
        if words[last] >= filled:
            left[found] = place
            found += 1
        place += ONE
    return found


@compiled
def look_up_either(
    words: Whole, there: Mask, slots: Whole, filled: int, first: int, symbols: Whole, left: Whole, found: int
) -> int:
    """symbols = slots[there, words], and the rest as in `look_up`: each row has one symbol, of the kind 0 or 1."""
    some, own = symbols.reshape(-1)[first:], there[first:]
    for i in range(len(words)):
        some[i] = slots[np.uint64(own[i]), np.uint64(words[i])]
        if words[i] >= filled:
            left[found] = first + i
            found += 1
    return found


@compiled
def look_up_bits(
    cells: Whole,
    there: Mask,
    words: Whole,
    slots: Whole,
    filled: int,
    first: int,
    symbols: Whole,
    left: Whole,
    found: int,
) -> int:
    """As `look_up`, from row `first` on, but symbol cell // 8 = slots[1 + cell % 8, word] where the cell is there.

    Some rows after the others, while what is read and written is in the cache. Among them, those where the cell is
    there are listed first: a branch on `there` would be guessed wrong.
    """
    flat, count = symbols.reshape(-1), symbols.shape[1]
    own = np.empty(SOME, dtype=np.uint32)
    for start in range(0, len(words) // count, SOME):
        some, row = words[start * count : (start + SOME) * count], first + start
        found = look_up(some, slots, filled, row * count, symbols, left, found)
        known, listed = there[row : row + len(some) // count], ZERO
        for i in range(len(known)):
            own[listed] = i
            listed += np.uint64(known[i])
        for i in range(listed):
            cell = np.uint64(cells[np.uint64(row) + np.uint64(own[i])])
            place = np.uint64(own[i]) * np.uint64(count) + (cell >> THREE)
            flat[np.uint64(row) * np.uint64(count) + place] = slots[ONE + (cell & SEVEN), some[place]]
    return found


@compiled
def start_of(row: int, device: np.uint64, base: int, apart: int, within: int, count: int) -> np.uint64:
    """Where the words of a row begin, as `few_rows.Starts` says."""
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
    """As `look_up`, from row `first` on, where each row's words begin at a place of their own (`few_rows.Starts`)."""
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
    """What `look_up_bits` does for cells that are there, after `look_up_from`."""
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

    Kinds are as in `look_up_bits`; without cells, all are of the first kind.
    """
    count = np.uint64(symbols.shape[1])
    for i in range(len(left)):
        row, place, kind = np.uint64(left[i]) // count, np.uint64(left[i]) % count, ZERO
        if len(cells) and there[row] and np.uint64(cells[row]) >> THREE == place:
            kind = ONE + (np.uint64(cells[row]) & SEVEN)
        symbols[row, place] = cuts_below(cuts[kind], words[i])


@compiled
def clear(column: Whole, kept: int) -> None:
    """Clear all but the kept bits of each row's last byte."""
    rows, count = column.shape
    for row in range(rows):
        column[row, count - 1] &= np.uint8(kept)


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
        symbols[i] = cuts_below(cuts[rows[i]], words[i])
