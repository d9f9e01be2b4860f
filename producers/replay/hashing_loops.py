"""BLAKE2b under a key, with a digest of 8 bytes (RFC 7693), of whole columns of text, compiled by numba.

`hashlib` defines the result (`people`). It takes a call, and objects for the text and the digest, for each cell; the
loop takes a column's bytes as they are. The key's block comes first and is the same for every cell, so it is compressed
once.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays import Bytes, Whole, Words
from protocols.arrays.compiling import compiled

BLOCK, DIGEST = 128, 8
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
def compress(state: Words, block: Words, length: int, last: bool) -> None:
    """Compress a block of 16 words into the state. `length`: bytes hashed so far, with this block.

    Rounds and places are written out: a loop over a table of orders, or an array that is unpacked, takes longer.
    """
    m0, m1, m2, m3 = block[0], block[1], block[2], block[3]
    m4, m5, m6, m7 = block[4], block[5], block[6], block[7]
    m8, m9, m10, m11 = block[8], block[9], block[10], block[11]
    m12, m13, m14, m15 = block[12], block[13], block[14], block[15]
    a0, a1, a2, a3 = state[0], state[1], state[2], state[3]
    b0, b1, b2, b3 = state[4], state[5], state[6], state[7]
    c0, c1, c2, c3 = START[0], START[1], START[2], START[3]
    d0, d1, d2, d3 = START[4], START[5], START[6], START[7]
    d0 ^= np.uint64(length)
    if last:
        d2 = ~d2
    v = (a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3)
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
    a, b, c, d = v
    for i in range(4):
        state[i] ^= a[i] ^ c[i]
        state[4 + i] ^= b[i] ^ d[i]


@compiled
def hash_cells(key: Bytes, ends: Whole, text: Bytes, digests: Words) -> None:
    """The digest of each cell, which is text[ends[i]:ends[i + 1]]; none may be empty."""
    room = np.zeros(BLOCK, dtype=np.uint8)
    words = room.view(np.uint64)
    keyed = START.copy()
    keyed[0] ^= np.uint64(0x01010000 | len(key) << 8 | DIGEST)
    room[: len(key)] = key
    compress(keyed, words, BLOCK, False)
    state = np.empty_like(keyed)
    for cell in range(len(digests)):
        begin, end = ends[cell], ends[cell + 1]
        state[:] = keyed
        for start in range(begin, end, BLOCK):
            size = min(BLOCK, end - start)
            for i in range(size):
                room[i] = text[start + i]
            room[size:] = 0
            compress(state, words, BLOCK + start + size - begin, start + size == end)
        digests[cell] = state[0]
