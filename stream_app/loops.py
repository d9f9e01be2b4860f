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
LINE = np.uint64(8)  # slots in a line of the cache
BATCH = 256


@compiled
def first_line(token: np.uint64, keys: Words, lines: np.uint64) -> np.uint64:
    """The line in which the search for a token begins."""
    mixed = (token ^ keys[0]) * keys[1]
    mixed = (mixed ^ (mixed >> HALF)) * keys[2]
    line: np.uint64 = ((mixed >> HALF) * lines) >> HALF
    return line


@compiled
def next_line(line: np.uint64, lines: np.uint64) -> np.uint64:
    """Where the search goes on."""
    return line + ONE if line + ONE < lines else EMPTY


@compiled
def look_at(slots: Words, line: np.uint64, token: np.uint64) -> tuple[np.uint64, bool]:
    """How many tokens a line holds, and whether this is one of them: without a branch that nobody could predict."""
    held, seen = EMPTY, False
    for slot in range(line * LINE, line * LINE + LINE):
        held += np.uint64(slots[slot] != EMPTY)
        seen |= slots[slot] == token
    return held, seen


@compiled
def insert(slots: Words, keys: Words, tokens: Words, new: NDArray[np.bool_]) -> np.uint64:
    """Put tokens into a table that has room, and say which were not there.

    Memory is slow to answer and can be asked much at once. So all lines that a batch needs are touched first, with
    loads that do not wait for one another; then they are searched, in the cache. Tokens whose line is full go on with
    the next line, again all at once. What was touched is returned lest the compiler leave the touching out.
    """
    count, touched = np.uint64(len(slots)) // LINE, EMPTY
    lines, rows = np.empty(BATCH, dtype=np.uint64), np.empty(BATCH, dtype=np.uint64)
    for start in range(0, len(tokens), BATCH):
        batch = tokens[start : start + BATCH]
        left = np.uint64(len(batch))
        for row in range(left):
            lines[row] = first_line(batch[row], keys, count)
            rows[row] = row
        while left:
            for place in range(left):
                touched ^= slots[lines[place] * LINE]
            full = EMPTY
            for place in range(left):
                row, line = rows[place], lines[place]
                held, seen = look_at(slots, line, batch[row])
                if not seen and held < LINE:
                    slots[line * LINE + held] = batch[row]
                new[start + row] = not seen
                rows[full], lines[full] = row, next_line(line, count)  # kept only if this line was full
                full += np.uint64(not seen and held == LINE)
            left = full
    return touched


@compiled
def move(held: Words, slots: Words, keys: Words) -> None:
    """Put all tokens of one table into another, larger and empty one. They are met in the order of their new lines.

    The first pass over each batch leaves out empty slots without a branch that nobody could predict.
    """
    count = np.uint64(len(slots)) // LINE
    filled = np.zeros(count, dtype=np.uint8)
    batch = np.empty(BATCH, dtype=np.uint64)
    for start in range(0, len(held), BATCH):
        tokens = EMPTY
        for token in held[start : start + BATCH]:
            batch[tokens] = token
            tokens += np.uint64(token != EMPTY)
        for row in range(tokens):
            line = first_line(batch[row], keys, count)
            while filled[line] == LINE:
                line = next_line(line, count)
            slots[line * LINE + np.uint64(filled[line])] = batch[row]
            filled[line] += 1


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
