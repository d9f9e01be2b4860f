"""The loops behind tokens and counters, compiled at their first call and kept for the next process.

They are imported at the first use and not before, because importing numba takes longer than most commands do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from protocols.compiling import compiled

Words = NDArray[np.uint64]
Rows = NDArray[np.int32]

HALF, ONE, EMPTY = np.uint64(32), np.uint64(1), np.uint64(0)
BATCH = 256


@compiled
def place_of(token: np.uint64, keys: Words, size: np.uint64) -> np.uint64:
    """Where the search for a token begins."""
    mixed = (token ^ keys[0]) * keys[1]
    mixed = (mixed ^ (mixed >> HALF)) * keys[2]
    place: np.uint64 = ((mixed >> HALF) * size) >> HALF
    return place


@compiled
def find(slots: Words, token: np.uint64, place: np.uint64) -> np.uint64:
    """The slot that holds the token, or the empty one where it belongs."""
    while slots[place] != token and slots[place] != EMPTY:
        place += ONE
        if place == np.uint64(len(slots)):
            place = EMPTY
    return place


@compiled
def insert(slots: Words, keys: Words, tokens: Words, new: NDArray[np.bool_]) -> np.uint64:
    """Put tokens into a table that has room, and say which were not there.

    The second pass over each batch only looks: its loads do not wait for one another, and the third finds its slots in
    the cache. What was looked at is returned lest the compiler leave the looking out.
    """
    size, looked = np.uint64(len(slots)), EMPTY
    places = np.empty(BATCH, dtype=np.uint64)
    for start in range(0, len(tokens), BATCH):
        batch = tokens[start : start + BATCH]
        for row in range(np.uint64(len(batch))):
            places[row] = place_of(batch[row], keys, size)
        for row in range(np.uint64(len(batch))):
            looked ^= slots[places[row]]
        for row in range(np.uint64(len(batch))):
            place = find(slots, batch[row], places[row])
            new[start + row] = slots[place] == EMPTY
            slots[place] = batch[row]
    return looked


@compiled
def move(held: Words, slots: Words, keys: Words) -> None:
    """Put all tokens of one table into another, larger one. They are met in the order of their new places.

    The first pass over each batch leaves out empty slots without a branch that nobody could predict.
    """
    size = np.uint64(len(slots))
    batch, places = np.empty(BATCH, dtype=np.uint64), np.empty(BATCH, dtype=np.uint64)
    for start in range(0, len(held), BATCH):
        count = EMPTY
        for token in held[start : start + BATCH]:
            batch[count] = token
            count += np.uint64(token != EMPTY)
        for row in range(count):
            places[row] = place_of(batch[row], keys, size)
        for row in range(count):
            slots[find(slots, batch[row], places[row])] = batch[row]


@compiled
def look_up(gaps: NDArray[np.uint16], rows_of: Rows, rows: Rows, n: NDArray[np.int64]) -> bool:
    """Look up each gap's row and count rows; False at a gap that has none."""
    for report in range(np.uint64(len(gaps))):
        row = rows_of[gaps[report]]
        if row < 0:
            return False
        rows[report] = row
        n[np.uint64(row)] += 1
    return True
