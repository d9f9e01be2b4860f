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
ROUNDS = 12
START = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    dtype=np.uint8,
)


@compiled
def turned(word: np.uint64, bits: int) -> np.uint64:
    return (word >> np.uint64(bits)) | (word << np.uint64(64 - bits))


@compiled
def mixed(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, x: np.uint64, y: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a = a + b + x
    d = turned(d ^ a, 32)
    c = c + d
    b = turned(b ^ c, 24)
    a = a + b + y
    d = turned(d ^ a, 16)
    c = c + d
    return a, turned(b ^ c, 63), c, d


@compiled
def compress(state: Words, block: Words, length: int, last: bool) -> None:
    """Compress a block of 16 words into the state. `length`: bytes hashed so far, with this block."""
    a0, a1, a2, a3, b0, b1, b2, b3 = state
    c0, c1, c2, c3, d0, d1, d2, d3 = START
    d0 ^= np.uint64(length)
    if last:
        d2 = ~d2
    for number in range(ROUNDS):
        o = ORDER[number]
        a0, b0, c0, d0 = mixed(a0, b0, c0, d0, block[o[0]], block[o[1]])
        a1, b1, c1, d1 = mixed(a1, b1, c1, d1, block[o[2]], block[o[3]])
        a2, b2, c2, d2 = mixed(a2, b2, c2, d2, block[o[4]], block[o[5]])
        a3, b3, c3, d3 = mixed(a3, b3, c3, d3, block[o[6]], block[o[7]])
        a0, b1, c2, d3 = mixed(a0, b1, c2, d3, block[o[8]], block[o[9]])
        a1, b2, c3, d0 = mixed(a1, b2, c3, d0, block[o[10]], block[o[11]])
        a2, b3, c0, d1 = mixed(a2, b3, c0, d1, block[o[12]], block[o[13]])
        a3, b0, c1, d2 = mixed(a3, b0, c1, d2, block[o[14]], block[o[15]])
    state[0] ^= a0 ^ c0
    state[1] ^= a1 ^ c1
    state[2] ^= a2 ^ c2
    state[3] ^= a3 ^ c3
    state[4] ^= b0 ^ d0
    state[5] ^= b1 ^ d1
    state[6] ^= b2 ^ d2
    state[7] ^= b3 ^ d3


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
