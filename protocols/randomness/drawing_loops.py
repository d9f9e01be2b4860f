"""What `drawing` does for many rows: loops compiled by numba at their first call and kept for the next process.

Indices are unsigned because numba then leaves out the test for negative ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from protocols.arrays.aliases import Bytes, Mask, Whole, Words
from protocols.arrays.compiling import address_of, compiled
from protocols.arrays.counting_loops import load_word, ones_of, store_word
from protocols.randomness.counter_loops import ONE, SEVEN, THREE, ZERO, Index

EIGHT = np.uint64(8)
SOME = 256  # rows: a byte names one of them
EACH, GATHER, SPREAD = np.uint64(0x0101010101010101), np.uint64(0x0102040810204080), np.uint64(56)
PLACES = np.array(
    [sum(bit << 8 * i for i, bit in enumerate(bit for bit in range(8) if byte >> bit & 1)) for byte in range(256)],
    dtype=np.uint64,
)
"""Of each byte, which of its bits are set: a byte for each, the lowest first."""
STEP = 16  # words
SHORT, LONG = (ir.VectorType(ir.IntType(bits), STEP) for bits in (16, 32))


def _unknown(typing: Any, number: Any) -> Any:
    """The same number, of which the compiler knows nothing, so that it makes no branch of a comparison."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        return builder.asm(ir.FunctionType(word, [word]), "", "=r,0", arguments, side_effect=False)

    return types.uint64(types.uint64), generate


unknown: Any = intrinsic(_unknown)


@compiled
def cuts_below(cuts: Words, row: Index, word: np.uint64) -> np.uint64:
    """How many cuts of a row a word is not below. A branch on a comparison would be guessed wrong half of the time."""
    low, size = ZERO, np.uint64(cuts.shape[1])
    while size > ZERO:
        half = (size + ONE) >> ONE
        low += half & (ZERO - unknown(np.uint64(cuts[np.uint64(row), low + half - ONE] <= word)))
        size >>= ONE
    return low


def _reaches(typing: Any, words: Any, place: Any, bound: Any) -> Any:
    """Whether one of `STEP` words from a place on is `bound` or more, compared all at once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = builder.bitcast(address_of(context, builder, signature, arguments, 16), SHORT.as_pointer())
        some = builder.zext(builder.load(address, align=2), LONG)
        bound = builder.insert_element(ir.Constant(LONG, ir.Undefined), arguments[2], LONG.element(0))
        bounds = builder.shuffle_vector(bound, bound, ir.Constant(LONG, [0] * STEP))
        reached = builder.bitcast(builder.icmp_unsigned(">=", some, bounds), ir.IntType(STEP))
        return builder.icmp_unsigned("!=", reached, reached.type(0))

    return types.boolean(words, types.uint64, types.uint32), generate


reaches: Any = intrinsic(_reaches)


@compiled
def list_left(words: Whole, start: Index, end: Index, filled: int, first: np.uint64, left: Whole, found: int) -> int:
    """Add the places, from `first` on, of words that are `filled` or more to `left`, which has `found` of them."""
    for i in range(start, end):
        if words[i] >= filled:
            left[found] = first + i
            found += 1
    return found


@compiled
def look_up(words: Whole, slots: Whole, filled: int, first: Index, flat: Whole, left: Whole, found: int) -> int:
    """Symbols = slots[0, words], from place `first` on among those of all rows.

    Places of words that are `filled` or more are written to `left` after those that were found before; returned is how
    many there are now. They are rare, so they are looked for only in steps that have one.
    """
    table, place, size = slots[0], np.uint64(first), np.uint64(len(words))
    whole = size - size % np.uint64(STEP)
    for start in range(ZERO, whole, np.uint64(STEP)):
        for i in range(STEP):
            at = start + np.uint64(i)
            flat[place + at] = table[words[at]]
        if reaches(words, start, np.uint32(filled)):
            found = list_left(words, start, start + np.uint64(STEP), filled, place, left, found)
    for last in range(whole, size):
        flat[place + last] = table[words[last]]
    return list_left(words, whole, size, filled, place, left, found)


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
def list_there(there: Mask, first: Index, rows: np.uint64, listed: Bytes) -> np.uint64:
    """Write which of some rows, at most `SOME` from `first` on, are there; returned is how many.

    Eight rows at a time: their bytes, each 0 or 1, become the bits of a number, for which `PLACES` has all at once.
    """
    found = ZERO
    for row in range(ZERO, rows - (rows & SEVEN), EIGHT):
        flags = load_word(there, np.uint64(first) + row)
        store_word(listed, found, PLACES[flags * GATHER >> SPREAD] + row * EACH)
        found += ones_of(flags)
    for row in range(rows - (rows & SEVEN), rows):
        listed[found] = row
        found += np.uint64(there[np.uint64(first) + row])
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
    """As `look_up`, from row `first` on; then symbol cell // 8 = slots[1 + cell % 8, word] where the cell is there.

    Some rows after the others, while what is read and written is in the cache. Those where the cell is there are listed
    first, because a branch on `there` would be guessed wrong.
    """
    flat, count, listed = symbols.reshape(-1), np.uint64(symbols.shape[1]), np.empty(SOME + 8, dtype=np.uint8)
    rows = np.uint64(len(words)) // count
    for start in range(ZERO, rows, np.uint64(SOME)):
        row, some, before = np.uint64(first) + start, min(np.uint64(SOME), rows - start), start * count
        found = look_up(words[before : before + some * count], slots, filled, row * count, flat, left, found)
        for i in range(list_there(there, row, some, listed)):
            cell = np.uint64(cells[row + np.uint64(listed[i])])
            place = np.uint64(listed[i]) * count + (cell >> THREE)
            flat[row * count + place] = slots[ONE + (cell & SEVEN), words[before + place]]
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
        symbols[row, place] = cuts_below(cuts, kind, words[i])


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
        symbols[i] = cuts_below(cuts, rows[i], words[i])
