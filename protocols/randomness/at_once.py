"""Counters, AES and look-ups of some rows after the others, in one compiled loop: what they write stays in the cache.

Only where `wide_aes` is available. What is drawn is what `Draws.parts` and `drawing.look_up` say.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Bytes, Mask, Whole, Words
from protocols.arrays.compiling import compiled
from protocols.arrays.counting_loops import ones_of
from protocols.randomness.counter_loops import (
    HALF,
    ONE,
    SEVEN,
    THREE,
    ZERO,
    fill_further,
    fill_shared,
    fill_streams,
)
from protocols.randomness.drawing_loops import (
    MORE,
    clear,
    kept_bits,
    look_up,
    look_up_again,
    look_up_either,
    look_up_from,
    look_up_own,
    resolve,
)
from protocols.randomness.few_rows import NEIGHBOURS
from protocols.randomness.wide_aes import AT_ONCE, encrypt_all
from protocols.randomness.wide_search import AT_ONCE as WORDS_AT_ONCE
from protocols.randomness.wide_search import search_step

BLOCKS = 2048  # at a time, if a row does not need more
ENOUGH = 512  # words that need further bits, to be worth the time that resolving them takes whatever their number
HALF_STEP, WHOLE_STEP = np.uint64(WORDS_AT_ONCE // 2), np.uint64(WORDS_AT_ONCE)


@compiled
def draw_in_a_row(
    keys: Words,
    devices: Words,
    tweaks: Whole,
    first: int,
    further: int,
    cells: Whole,
    there: Mask,
    slots: Whole,
    filled: int,
    tree: Bytes,
    cuts: Words,
    spare: int,
    symbols: Whole,
) -> None:
    """Symbols of devices that are numbered in a row and have one tweak, by the blocks of whole streams.

    Numbers of blocks begin with `first`, those of further bits with `further`. The spare bits of a row's last symbol
    are cleared.
    """
    rows, count = symbols.shape
    streams = max(1, BLOCKS // count)
    if streams > AT_ONCE:
        streams -= streams % AT_ONCE  # so that no step of encrypting is in part empty
    counters = np.empty((streams, count, 2), dtype=np.uint64)
    fill_streams(devices[0] >> THREE, np.uint64(tweaks[0]) | np.uint64(first) << HALF, counters)
    blocks = counters.reshape(-1)
    keystream = np.empty_like(blocks)
    words = keystream.view(np.uint16)
    flat, left = symbols.reshape(-1), np.empty(len(words) + ENOUGH, dtype=np.intp)
    keep, either = kept_bits(symbols, spare), len(there) > 0 and count == 1 and len(slots) == 2
    row = found = rows - rows  # a literal 0 would have numba compile everything twice that it is passed to
    before, onward = np.int64(devices[0] & SEVEN), ZERO
    while row < rows:
        encrypt_all(keys, blocks, onward, keystream)
        end = min(row + NEIGHBOURS * streams - before, rows)
        some = words[before * count : (before + end - row) * count]
        if either:
            found = look_up_either(some, there, slots, filled, row, symbols, left, found)
        else:
            found = search(some, slots, filled, tree, keep, row * count, flat, left, found)
        if spare and (either or len(tree) == 0 or len(some) % WORDS_AT_ONCE):
            clear(symbols[row:end], spare)
        if len(there) and not either:
            look_up_own(cells, there, some, ZERO, slots, keep, row, end, flat)
        if found >= ENOUGH or end == rows:
            resolve_left(keys, devices, tweaks, further, cells, there, cuts, spare, symbols, left[:found])
            found = rows - rows
        row, before = end, np.int64(0)
        onward += np.uint64(streams)


@compiled
def search(
    words: Whole, slots: Whole, filled: int, tree: Bytes, keep: Whole, first: int, flat: Whole, left: Whole, found: int
) -> int:
    """As `look_up`, for whole rows; by a tree, where there is one, and then with only the bits that `keep` says.

    Of the last words, which are no whole step, all bits are kept.
    """
    count, size, place = np.uint64(len(keep) - MORE), np.uint64(len(words)), np.uint64(first)
    turn, further = ZERO, WHOLE_STEP % count
    whole = size - size % WHOLE_STEP if len(tree) else ZERO
    for start in range(ZERO, whole, WHOLE_STEP):
        lanes = search_step(words, start, tree, keep, turn, flat, place + start)
        turn = min(turn + further, turn + further - count)
        while lanes:
            lane = start + ones_of((lanes & (~lanes + ONE)) - ONE)
            left[found] = place + lane
            found += words[lane] >= filled
            left[found] = place + lane + HALF_STEP
            found += words[lane + HALF_STEP] >= filled
            lanes &= lanes - ONE
    return look_up(words[whole:], slots, filled, place + whole, flat, left, found) if whole < size else found


@compiled
def draw_apart(
    keys: Words,
    devices: Words,
    tweaks: Whole,
    first: int,
    further: int,
    cells: Whole,
    there: Mask,
    slots: Whole,
    filled: int,
    cuts: Words,
    spare: int,
    symbols: Whole,
    left: Whole,
) -> None:
    """One symbol each of devices that have a block of their own, each at its tweak."""
    found = len(devices) - len(devices)  # not a literal, as above
    counters = np.empty((BLOCKS, 1, 2), dtype=np.uint64)
    keystream = np.empty(2 * BLOCKS, dtype=np.uint64)
    words, apart, within = keystream.view(np.uint16), NEIGHBOURS, NEIGHBOURS - 1
    for row in range(0, len(devices), BLOCKS):
        some = devices[row : row + BLOCKS]
        blocks = counters[: len(some)]
        fill_shared(some, tweaks[row : row + BLOCKS], first, 1, blocks)
        encrypt_all(keys, blocks.reshape(-1), ZERO, keystream)
        found = look_up_from(some, 0, apart, within, words, slots, filled, row, symbols, left, found)
        if len(there):
            look_up_again(cells, there, some, 0, apart, within, words, slots, row, symbols)
    resolve_left(keys, devices, tweaks, further, cells, there, cuts, spare, symbols, left[:found])
    if spare:
        clear(symbols, spare)


@compiled
def resolve_left(
    keys: Words,
    devices: Words,
    tweaks: Whole,
    first: int,
    cells: Whole,
    there: Mask,
    cuts: Words,
    spare: int,
    symbols: Whole,
    left: Whole,
) -> None:
    """Symbols whose words were not enough, by further bits: a block of its own for each."""
    counters, keystream = np.empty((len(left), 2), dtype=np.uint64), np.empty(2 * len(left), dtype=np.uint64)
    fill_further(devices, tweaks, first, left, symbols.shape[1], counters)
    encrypt_all(keys, counters.reshape(-1), ZERO, keystream)
    resolve(cuts, left, keystream[::2], cells, there, spare, symbols)
