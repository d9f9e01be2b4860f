"""BLAKE2b under a key, with a digest of 8 bytes (RFC 7693), of whole columns of text, compiled by numba.

`hashlib` defines the result (`people`). It takes a call, and objects for the text and the digest, for each cell. The
loops take a column's bytes as they are, and several cells side by side, each in a lane: every step is the same for all
lanes, so the compiler makes it one step for as many lanes as the processor has room for. The key's block comes first
and is the same for every cell, so it is compressed once.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays import Bytes, Whole, Words
from protocols.arrays.compiling import compiled

LANES = 64
BLOCK, DIGEST = 128, 8
WORD, WORDS = 8, 16
"""Bytes in a word, and words in a block. Word w of lane l is at w * LANES + l."""
START = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
Words4 = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
State = tuple[Words4, Words4, Words4, Words4]


@compiled
def turned(word: np.uint64, bits: int) -> np.uint64:
    return (word >> np.uint64(bits)) | (word << np.uint64(64 - bits))


@compiled
def mixed(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, x: np.uint64, y: np.uint64) -> Words4:
    a = a + b + x
    d = turned(d ^ a, 32)
    c = c + d
    b = turned(b ^ c, 24)
    a = a + b + y
    d = turned(d ^ a, 16)
    c = c + d
    return a, turned(b ^ c, 63), c, d


@compiled
def mixed_round(
    v: State,
    x0: np.uint64, x1: np.uint64, x2: np.uint64, x3: np.uint64, x4: np.uint64, x5: np.uint64, x6: np.uint64,
    x7: np.uint64, x8: np.uint64, x9: np.uint64, x10: np.uint64, x11: np.uint64, x12: np.uint64, x13: np.uint64,
    x14: np.uint64, x15: np.uint64,
) -> State:  # fmt: skip
    """The state after one round: its columns are mixed, then its diagonals."""
    (a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3) = v
    a0, b0, c0, d0 = mixed(a0, b0, c0, d0, x0, x1)
    a1, b1, c1, d1 = mixed(a1, b1, c1, d1, x2, x3)
    a2, b2, c2, d2 = mixed(a2, b2, c2, d2, x4, x5)
    a3, b3, c3, d3 = mixed(a3, b3, c3, d3, x6, x7)
    a0, b1, c2, d3 = mixed(a0, b1, c2, d3, x8, x9)
    a1, b2, c3, d0 = mixed(a1, b2, c3, d0, x10, x11)
    a2, b3, c0, d1 = mixed(a2, b3, c0, d1, x12, x13)
    a3, b0, c1, d2 = mixed(a3, b0, c1, d2, x14, x15)
    return (a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3)


@compiled
def compress(state: Words, block: Words, lengths: Words, lasts: Words) -> None:
    """Compress a block of 16 words into the state, in each lane.

    `lengths`: bytes hashed so far, with this block. `lasts`: all bits are set if this block is the last one, else none.
    Rounds and places are written out: a loop over a table of orders takes longer.
    """
    s0, s1, s2, s3, s4, s5, s6, s7 = START[0], START[1], START[2], START[3], START[4], START[5], START[6], START[7]
    for lane in range(LANES):
        m0, m1 = block[lane], block[LANES + lane]
        m2, m3 = block[2 * LANES + lane], block[3 * LANES + lane]
        m4, m5 = block[4 * LANES + lane], block[5 * LANES + lane]
        m6, m7 = block[6 * LANES + lane], block[7 * LANES + lane]
        m8, m9 = block[8 * LANES + lane], block[9 * LANES + lane]
        m10, m11 = block[10 * LANES + lane], block[11 * LANES + lane]
        m12, m13 = block[12 * LANES + lane], block[13 * LANES + lane]
        m14, m15 = block[14 * LANES + lane], block[15 * LANES + lane]
        h0, h1, h2, h3 = state[lane], state[LANES + lane], state[2 * LANES + lane], state[3 * LANES + lane]
        h4, h5 = state[4 * LANES + lane], state[5 * LANES + lane]
        h6, h7 = state[6 * LANES + lane], state[7 * LANES + lane]
        v = (h0, h1, h2, h3), (h4, h5, h6, h7), (s0, s1, s2, s3), (s4 ^ lengths[lane], s5, s6 ^ lasts[lane], s7)
        v = mixed_round(v, m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15)
        v = mixed_round(v, m14, m10, m4, m8, m9, m15, m13, m6, m1, m12, m0, m2, m11, m7, m5, m3)
        v = mixed_round(v, m11, m8, m12, m0, m5, m2, m15, m13, m10, m14, m3, m6, m7, m1, m9, m4)
        v = mixed_round(v, m7, m9, m3, m1, m13, m12, m11, m14, m2, m6, m5, m10, m4, m0, m15, m8)
        v = mixed_round(v, m9, m0, m5, m7, m2, m4, m10, m15, m14, m1, m11, m12, m6, m8, m3, m13)
        v = mixed_round(v, m2, m12, m6, m10, m0, m11, m8, m3, m4, m13, m7, m5, m15, m14, m1, m9)
        v = mixed_round(v, m12, m5, m1, m15, m14, m13, m4, m10, m0, m7, m6, m3, m9, m2, m8, m11)
        v = mixed_round(v, m13, m11, m7, m14, m12, m1, m3, m9, m5, m0, m15, m4, m8, m6, m2, m10)
        v = mixed_round(v, m6, m15, m14, m9, m11, m3, m0, m8, m12, m2, m13, m7, m1, m4, m10, m5)
        v = mixed_round(v, m10, m2, m8, m4, m7, m6, m1, m5, m15, m11, m9, m14, m3, m12, m13, m0)
        v = mixed_round(v, m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15)
        v = mixed_round(v, m14, m10, m4, m8, m9, m15, m13, m6, m1, m12, m0, m2, m11, m7, m5, m3)
        (a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3) = v
        state[lane] = h0 ^ a0 ^ c0
        state[LANES + lane] = h1 ^ a1 ^ c1
        state[2 * LANES + lane] = h2 ^ a2 ^ c2
        state[3 * LANES + lane] = h3 ^ a3 ^ c3
        state[4 * LANES + lane] = h4 ^ b0 ^ d0
        state[5 * LANES + lane] = h5 ^ b1 ^ d1
        state[6 * LANES + lane] = h6 ^ b2 ^ d2
        state[7 * LANES + lane] = h7 ^ b3 ^ d3


@compiled
def hash_cells(key: Bytes, ends: Whole, text: Bytes, digests: Words) -> None:
    """The digest of each cell, which is text[ends[i]:ends[i + 1]]; none may be empty."""
    block, state = np.zeros(WORDS * LANES, dtype=np.uint64), np.repeat(START, LANES)
    room = block.view(np.uint8)
    lengths, lasts = np.full(LANES, np.uint64(BLOCK)), np.zeros(LANES, dtype=np.uint64)
    state[:LANES] ^= np.uint64(0x01010000 | len(key) << 8 | DIGEST)
    for lane in range(LANES):
        put(room, lane, key, 0, len(key))
    compress(state, block, lengths, lasts)
    keyed = state.copy()
    for first in range(0, len(digests), LANES):
        lanes, start, left = min(LANES, len(digests) - first), 0, True
        state[:] = keyed
        while left:
            block[:] = 0
            left = False
            for lane in range(lanes):
                begin, end = ends[first + lane] + start, ends[first + lane + 1]
                last = end <= begin + BLOCK
                put(room, lane, text, begin, min(end, begin + BLOCK))
                lengths[lane] = min(end - begin, BLOCK) + start + BLOCK
                lasts[lane] = ~np.uint64(0) if last else np.uint64(0)
                left = left or not last
            compress(state, block, lengths, lasts)
            for lane in range(lanes):
                if start < ends[first + lane + 1] - ends[first + lane]:  # else its last block came before
                    digests[first + lane] = state[lane]
            start += BLOCK


@compiled
def put(room: Bytes, lane: int, text: Bytes, begin: int, end: int) -> None:
    """Put text into the block of a lane."""
    for i in range(end - begin):
        room[(i // WORD * LANES + lane) * WORD + i % WORD] = text[begin + i]
