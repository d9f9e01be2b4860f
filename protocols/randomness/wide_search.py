"""Words looked up 64 at a time with no table in memory: each is compared with eight cuts (AVX-512 VBMI).

The slots of a sampler are in the order of their symbols, so a word's symbol is how many cuts it is not below: a binary
search of eight comparisons for up to 256 symbols. A register holds 32 cuts, and one instruction fetches from it a cut
for each of 32 words. That takes less time than look-ups in a table of 2^16 bytes, which does not fit the first cache.

Where the processor does not have these instructions, trees are empty, and words are looked up in the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from protocols.arrays.aliases import Bytes, Column, Whole
from protocols.arrays.compiling import address_of, compiled
from protocols.randomness.wide_aes import apply, features

available = {"+avx512vbmi", "+avx512bw", "+avx512f"} <= set(features.split(","))

SYMBOLS, SLOTS = 256, 1 << 16
LEVELS = 8
EACH = 32  # words in a register, and cuts
AT_ONCE = 2 * EACH
START = 0x1FFF
"""A path before the first comparison: in the lower byte a bit for each, in the upper one those of the first five.

A bit is cleared where the word is below the cut; the first comparison has the lowest. Both bytes are places in a row
of the tree, of which six bits count: the upper one is below 32 and fetches a cut's upper byte, the other its lower one.
"""
FIRST, LAST = 12, 13  # rows of the tree: that of `START`, and that of `filled`
BYTE, SHORT, FLAG, NUMBER = (ir.IntType(bits) for bits in (8, 16, 32, 64))
WORDS, BYTES = ir.VectorType(SHORT, EACH), ir.VectorType(BYTE, AT_ONCE)
APART = ir.Constant(ir.VectorType(FLAG, AT_ONCE), [*range(0, AT_ONCE, 2), *range(1, AT_ONCE, 2)])


def tree(slots: Column, filled: int) -> Bytes:
    """What `search_step` needs for the slots of one kind, 64 bytes a row; empty where they cannot be searched so.

    The root, the cuts of the seven levels below it, `START` and `filled`.

    >>> tree(np.zeros(SLOTS, dtype=np.uint16), 9).shape
    (0, 64)
    """
    if not available or slots.dtype != np.uint8 or filled == SLOTS:
        return np.empty((0, AT_ONCE), dtype=np.uint8)
    cuts = np.searchsorted(slots[:filled], np.arange(SYMBOLS))
    root, start, last = (np.full(EACH, number, dtype="<u2") for number in (cuts[SYMBOLS // 2], START, filled))
    rows = [root, *(_level(cuts, level) for level in range(1, LEVELS)), start, last]
    return np.concatenate([row.view(np.uint8).reshape(-1) for row in rows]).reshape(-1, AT_ONCE)


def _level(cuts: Whole, level: int) -> Bytes:
    """The cuts of a level, each at the place that is its path: of every 32, the upper bytes and then the lower ones."""
    paths = np.arange(max(EACH, 1 << level))
    nodes = np.zeros_like(paths)
    for bit in range(level):
        nodes = 2 * nodes + (paths >> bit & 1)
    found = cuts[(2 * nodes + 1) << (LEVELS - 1 - level)].reshape(-1, EACH)
    return np.stack([found >> 8, found & 0xFF], axis=1).astype(np.uint8)


def _paths(builder: Any, words: Any, rows: list[Any]) -> Any:
    """The path of each of 32 words through the tree.

    The sixth comparison and those after it have more than 32 cuts: a cut is fetched from each of two rows or four, and
    one of them is selected.
    """

    def cut(row: int) -> Any:
        fetched = apply(builder, "x86.avx512.permvar.qi.512", rows[row], builder.bitcast(path, BYTES))
        return builder.bitcast(fetched, WORDS)

    def below(cuts: Any) -> Any:
        return builder.icmp_unsigned("<", words, cuts)

    def less(which: Any, bits: int) -> Any:
        return builder.select(which, builder.sub(path, _all(bits)), path)

    path = builder.bitcast(rows[FIRST], WORDS)
    path = less(below(builder.bitcast(rows[0], WORDS)), 0x0101)
    for level in range(1, 5):
        path = less(below(cut(level)), 0x0101 << level)
    sixth = below(cut(5))
    seventh = below(builder.select(sixth, cut(6), cut(7)))
    low, high = (builder.select(sixth, cut(row), cut(row + 1)) for row in (8, 10))
    eighth = below(builder.select(seventh, low, high))
    for level, which in enumerate((sixth, seventh, eighth), start=5):
        path = less(which, 1 << level)
    return path


def _search_step(typing: Any, words: Any, place: Any, tree: Any, keep: Any, turn: Any, out: Any, at: Any) -> Any:
    """Write the symbols of `AT_ONCE` words from a place on, with only those bits that `keep` has from `turn` on.

    A path, its bits turned round, is the symbol. Returned is for which i of 0..31 word i or word i + 32 needs further
    bits.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def address(array: int, index: Any, kind: Any) -> Any:
            of = types.void(signature.args[array], types.uint64)
            return builder.bitcast(address_of(context, builder, of, (arguments[array], index), 8), kind.as_pointer())

        def load(array: int, index: Any, kind: Any) -> Any:
            return builder.load(address(array, index, kind), align=1)

        rows = [load(2, NUMBER(AT_ONCE * row), BYTES) for row in range(LAST + 1)]
        halves = [load(0, builder.add(arguments[1], NUMBER(EACH * half)), WORDS) for half in range(2)]
        first, second = (_paths(builder, half, rows) for half in halves)
        both = builder.or_(builder.and_(first, _all(0xFF)), builder.shl(second, _all(8)))
        turned = apply(builder, "bitreverse.v64i8", builder.bitcast(both, BYTES))
        symbols = builder.shuffle_vector(turned, turned, APART)
        builder.store(builder.and_(symbols, load(3, arguments[4], BYTES)), address(5, arguments[6], BYTES), align=1)
        larger = builder.select(builder.icmp_unsigned(">", *halves), *halves)
        further = builder.icmp_unsigned(">=", larger, builder.bitcast(rows[LAST], WORDS))
        return builder.zext(builder.bitcast(further, ir.IntType(EACH)), NUMBER)

    number = types.uint64
    return number(words, number, tree, keep, number, out, number), generate


def _all(number: int) -> Any:
    return ir.Constant(WORDS, [number] * EACH)


@compiled
def _no_step(words: Any, place: Any, tree: Any, keep: Any, turn: Any, out: Any, at: Any) -> np.uint64:
    """For a processor without the instructions, where all trees are empty: it is compiled, and never called."""
    return np.uint64(0)


search_step: Any = intrinsic(_search_step) if available else _no_step
