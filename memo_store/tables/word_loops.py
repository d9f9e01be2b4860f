"""The loops behind `WordTable`, compiled at their first call and kept for the next process.

Import this module at the first use and not before: importing numba takes longer than most commands do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Words
from protocols.arrays.compiling import compiled

HALF, ONE, EMPTY = np.uint64(32), np.uint64(1), np.uint64(0)


@compiled
def slot_of(name: np.uint64, names: Words) -> np.uint64:
    """The slot with a name, or the empty one where it would be."""
    slots = np.uint64(len(names))
    slot = ((name >> HALF) * slots) >> HALF
    while names[slot] != name and names[slot] != EMPTY:
        slot = slot + ONE if slot + ONE < slots else EMPTY
    return slot


@compiled
def find(names: Words, words: Words, asked: Words, known: NDArray[np.bool_], found: Words) -> None:
    """Which of the names that are asked for are known, and the words of all (0 if not)."""
    for row in range(len(asked)):
        slot = slot_of(asked[row], names)
        known[row] = names[slot] != EMPTY
        found[row] = words[slot]


@compiled
def add(names: Words, words: Words, new_names: Words, new_words: Words) -> int:
    """Add the words of names that are not known. Returns how many these are."""
    added = 0
    for row in range(len(new_names)):
        slot = slot_of(new_names[row], names)
        if names[slot] == EMPTY:
            names[slot], words[slot] = new_names[row], new_words[row]
            added += 1
    return added


@compiled
def change(names: Words, words: Words, known_names: Words, new_words: Words) -> None:
    """Change the words of names that are known."""
    for row in range(len(known_names)):
        words[slot_of(known_names[row], names)] = new_words[row]
