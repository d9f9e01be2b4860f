"""Counters, AES and look-ups of some rows after the others, in one compiled loop: what they write stays in the cache.

Only where `wide_aes` is available. What is drawn is what `Draws.parts` and `drawing.look_up` say.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Mask, Whole, Words
from protocols.arrays.compiling import compiled
from protocols.randomness.drawing_loops import (
    ZERO,
    fill_further,
    fill_shared,
    fill_streams,
    look_up,
    look_up_again,
    look_up_bits,
    look_up_either,
    look_up_from,
    resolve,
)
from protocols.randomness.few_rows import NEIGHBOURS
from protocols.randomness.wide_aes import AT_ONCE, encrypt_all

BLOCKS = 2048  # at a time, if a row does not need more


@compiled
def draw_in_a_row(
    keys: Words,
    group: int,
    before: int,
    tail: int,
    cells: Whole,
    there: Mask,
    slots: Whole,
    filled: int,
    symbols: Whole,
    left: Whole,
) -> int:
    """Symbols of devices that are numbered in a row, by the blocks of whole streams from `group` on.

    In the first stream, so many devices are before them.
    """
    flat, rows, count = symbols.reshape(-1), symbols.shape[0], symbols.shape[1]
    streams = max(1, BLOCKS // count)
    if streams > AT_ONCE:
        streams -= streams % AT_ONCE  # so that no step of encrypting is in part empty
    counters = np.empty((streams, count, 2), dtype=np.uint64)
    fill_streams(group, tail, counters)
    blocks = counters.reshape(-1)
    keystream = np.empty_like(blocks)
    words = keystream.view(np.uint16)
    row, found, onward = 0, 0, ZERO
    while row < rows:
        encrypt_all(keys, blocks, onward, keystream)
        end = min(row + NEIGHBOURS * streams - before, rows)
        some = words[before * count : (before + end - row) * count]
        if len(there) == 0:
            found = look_up(some, slots, filled, row * count, flat, left, found)
        elif count == 1 and len(slots) == 2:
            found = look_up_either(some, there, slots, filled, row, symbols, left, found)
        else:
            found = look_up_bits(cells, there, some, slots, filled, row, symbols, left, found)
        row, before = end, 0
        onward += np.uint64(streams)
    return found


@compiled
def draw_apart(
    keys: Words,
    devices: Words,
    tweaks: Whole,
    first: int,
    cells: Whole,
    there: Mask,
    slots: Whole,
    filled: int,
    symbols: Whole,
    left: Whole,
) -> int:
    """One symbol each of devices that have a block of their own, each at its tweak."""
    found = 0
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
    return found


@compiled
def resolve_left(
    keys: Words,
    devices: Words,
    tweaks: Whole,
    first: int,
    cells: Whole,
    there: Mask,
    cuts: Words,
    symbols: Whole,
    left: Whole,
) -> None:
    """Symbols whose words were not enough, by further bits: a block of its own for each."""
    counters, keystream = np.empty((len(left), 2), dtype=np.uint64), np.empty(2 * len(left), dtype=np.uint64)
    fill_further(devices, tweaks, first, left, symbols.shape[1], counters)
    encrypt_all(keys, counters.reshape(-1), ZERO, keystream)
    resolve(cuts, left, keystream[::2], cells, there, symbols)
