"""The loops behind stream_app.tokens, compiled at their first call and kept for the next process.

They are imported at the first insert and not before, because importing numba takes longer than most commands do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from protocols.compiling import compiled

Words = NDArray[np.uint64]

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
def insert(slots: Words, keys: Words, tokens: Words, new: NDArray[np.bool_]) -> None:
    """Put tokens into a table that has room, and say which were not there.

    The first pass over each batch only looks: its loads do not wait for one another, and the second finds its slots in
    the cache.
    """
    size = np.uint64(len(slots))
    places = np.empty(BATCH, dtype=np.uint64)
    looked = np.empty(BATCH, dtype=np.uint64)
    for start in range(0, len(tokens), BATCH):
        batch = tokens[start : start + BATCH]
        for row in range(len(batch)):
            places[row] = place_of(batch[row], keys, size)
            looked[row] = slots[places[row]]
        for row in range(len(batch)):
            place = find(slots, batch[row], places[row])
            new[start + row] = slots[place] == EMPTY
            slots[place] = batch[row]


@compiled
def move(held: Words, slots: Words, keys: Words) -> None:
    """Put all tokens of one table into another, larger one. They are met in the order of their new places."""
    size = np.uint64(len(slots))
    for token in held:
        if token != EMPTY:
            slots[find(slots, token, place_of(token, keys, size))] = token
