"""The loops behind tokens and gaps, compiled at their first call and kept for the next process.

Import this module at the first use and not before: importing numba takes longer than most commands do.

The instructions written by hand (lines compared as vectors, lines prefetched) are felt: with a plain loop instead, a
worker that counts a backlog takes 1.2 times the CPU (`python -m bench.against COMMIT worker`, medians of five turns).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from protocols.arrays import Column, Mask, Rows, Whole, Words
from protocols.arrays.compiling import address_of, compiled
from stream_app.counting.tables import SLOTS_PER_LINE

HALF, ONE, EMPTY = np.uint64(32), np.uint64(1), np.uint64(0)
LINE = np.uint64(SLOTS_PER_LINE)
BATCH = 1024
AHEAD = np.uint64(32)

declared: Any = cgutils.get_or_insert_function


@compiled
def first_line(token: np.uint64, keys: Words, lines: np.uint64) -> np.uint64:
    """Where the search for a token begins: two keyed multiplications, then the upper half scaled to the table."""
    mixed = (token ^ keys[0]) * keys[1]
    mixed = (mixed ^ (mixed >> HALF)) * keys[2]
    line: np.uint64 = ((mixed >> HALF) * lines) >> HALF
    return line


@compiled
def next_line(line: np.uint64, lines: np.uint64) -> np.uint64:
    """Where the search goes on."""
    return line + ONE if line + ONE < lines else EMPTY


def _line(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The slots of a line as one vector, which is compared as a whole: LLVM does not do so with a loop over them."""
    line = ir.VectorType(ir.IntType(64), SLOTS_PER_LINE)
    address = address_of(context, builder, signature, arguments, 64)
    return builder.load(builder.bitcast(address, line.as_pointer()), align=8)


def _as_bits(builder: Any, compared: Any) -> Any:
    return builder.bitcast(compared, ir.IntType(SLOTS_PER_LINE))


def _held(typing: Any, slots: Any, slot: Any) -> Any:
    """How many tokens the line has that begins at a slot."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        line = _line(context, builder, signature, arguments)
        filled = builder.icmp_unsigned("!=", line, ir.Constant(line.type, [0] * SLOTS_PER_LINE))
        return builder.zext(builder.ctpop(_as_bits(builder, filled)), ir.IntType(64))

    return types.uint64(slots, types.uint64), generate


def _has(typing: Any, slots: Any, slot: Any, token: Any) -> Any:
    """Whether a token is in the line that begins at a slot."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        line = _line(context, builder, signature, arguments)
        wanted, place = ir.Constant(line.type, ir.Undefined), ir.IntType(32)
        for slot in range(SLOTS_PER_LINE):
            wanted = builder.insert_element(wanted, arguments[2], place(slot))
        found = _as_bits(builder, builder.icmp_unsigned("==", line, wanted))
        return builder.icmp_unsigned("!=", found, found.type(0))

    return types.boolean(slots, types.uint64, types.uint64), generate


held_in: Any = intrinsic(_held)
is_in: Any = intrinsic(_has)


def _prefetch(typing: Any, slots: Any, slot: Any) -> Any:
    """Start to load the line of a slot into the cache, without waiting for it. numba has no such call, but LLVM has."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, number = address_of(context, builder, signature, arguments, 8), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = declared(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [address, number(1), number(3), number(1)])  # to write, to keep, data
        return context.get_dummy_value()

    return types.void(slots, types.uint64), generate


prefetch_line: Any = intrinsic(_prefetch)


@compiled
def insert(slots: Words, keys: Words, tokens: Words, new: Mask) -> None:
    """Put tokens into a table that has room, and mark those that are new.

    Memory has a high latency but serves many requests at once: lines are prefetched well before they are read. Tokens
    whose line is full go on to the next line, again all of a batch at once.
    """
    count = np.uint64(len(slots)) // LINE
    lines, rows = np.empty(BATCH, dtype=np.uint64), np.empty(BATCH, dtype=np.uint64)
    for start in range(0, len(tokens), BATCH):
        batch = tokens[start : start + BATCH]
        left = np.uint64(len(batch))
        for row in range(left):
            lines[row] = first_line(batch[row], keys, count)
            rows[row] = row
        while left:
            for place in range(min(AHEAD, left)):
                prefetch_line(slots, lines[place] * LINE)
            full = EMPTY
            for place in range(left):
                if place + AHEAD < left:
                    prefetch_line(slots, lines[place + AHEAD] * LINE)
                row, line = rows[place], lines[place]
                held, seen = held_in(slots, line * LINE), is_in(slots, line * LINE, batch[row])
                if not seen and held < LINE:
                    slots[line * LINE + held] = batch[row]
                new[start + row] = not seen
                rows[full], lines[full] = row, next_line(line, count)  # kept only if this line was full
                full += np.uint64(not seen and held == LINE)
            left = full


@compiled
def move(held: Words, slots: Words, keys: Words) -> None:
    """Copy all tokens of a table into a larger, empty one. The order of lines is the same in both.

    The first pass over each batch leaves out empty slots without branches, which would be mispredicted.
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
def look_up(gaps: Column, rows_of: Rows, rows: Rows, n: Whole) -> bool:
    """Look up the row of each gap, and count rows; False at a gap that has none. Both columns may not be written to."""
    for report in range(len(gaps)):
        row = rows_of[gaps[report]]
        if row < 0:
            return False
        rows[report] = row
        n[row] += 1
    return True
