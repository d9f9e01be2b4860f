"""The loops behind tokens, compiled at their first call and kept for the next process.

Import this module at the first use and not before: importing numba takes longer than most commands do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from protocols.arrays import Mask, Words
from protocols.arrays.compiling import address_of, compiled

HALF, ONE, EMPTY = np.uint64(32), np.uint64(1), np.uint64(0)
BATCH = 64

declared: Any = cgutils.get_or_insert_function


def _prefetch(typing: Any, slots: Any, slot: Any) -> Any:
    """Start to load a slot into the cache, without waiting for it. numba has no such call, but LLVM has."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, number = address_of(context, builder, signature, arguments, 8), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = declared(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [address, number(1), number(3), number(1)])  # to write, to keep, data
        return context.get_dummy_value()

    return types.void(slots, types.uint64), generate


prefetch: Any = intrinsic(_prefetch)


@compiled
def first_slot(token: np.uint64, keys: Words, count: np.uint64) -> np.uint64:
    """Where the search for a token begins: two keyed multiplications, then the upper half scaled to the table."""
    mixed = (token ^ keys[0]) * keys[1]
    mixed = (mixed ^ (mixed >> HALF)) * keys[2]
    slot: np.uint64 = ((mixed >> HALF) * count) >> HALF
    return slot


@compiled
def insert(slots: Words, keys: Words, tokens: Words, new: Mask) -> None:
    """Put tokens into a table that has room, and mark those that are new.

    Memory has a high latency but serves many requests at once: the slots of a batch are prefetched before one is read.
    """
    count, firsts = np.uint64(len(slots)), np.empty(BATCH, dtype=np.uint64)
    for start in range(0, len(tokens), BATCH):
        batch = tokens[start : start + BATCH]
        for row in range(len(batch)):
            firsts[row] = first_slot(batch[row], keys, count)
            prefetch(slots, firsts[row])
        for row in range(len(batch)):
            slot = firsts[row]
            while slots[slot] != EMPTY and slots[slot] != batch[row]:
                slot = slot + ONE if slot + ONE < count else EMPTY
            new[start + row] = slots[slot] == EMPTY
            slots[slot] = batch[row]


@compiled
def move(held: Words, slots: Words, keys: Words) -> None:
    """Copy all tokens of a table into a larger, empty one. They have about the same order in both."""
    count = np.uint64(len(slots))
    for token in held:
        if token != EMPTY:
            slot = first_slot(token, keys, count)
            while slots[slot] != EMPTY:
                slot = slot + ONE if slot + ONE < count else EMPTY
            slots[slot] = token
