"""AES-128 of many blocks by instructions that take two blocks at a time (VAES), twice as fast as OpenSSL's ECB.

Only where the processor has them, and only from a few hundred blocks on; everywhere else `cryptography` encrypts. What
comes out is the same, which is checked for every key before it is used. These instructions take the same time for all
keys and blocks, so they reveal nothing by it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from llvmlite import ir
from numba import types
from numba.core import cgutils, codegen, config
from numba.extending import intrinsic

from protocols.arrays.aliases import Words
from protocols.arrays.compiling import address_of, compiled

ROUNDS = 10
PAIRS = 8  # in flight at once: an instruction takes several cycles, and two begin in each
AT_ONCE = 2 * PAIRS  # blocks
STEP = 2 * AT_ONCE  # 64-bit numbers
NUMBER, WORD = ir.IntType(64), ir.IntType(32)
BLOCK, PAIR = ir.VectorType(NUMBER, 2), ir.VectorType(NUMBER, 4)
_numba: Any = codegen
_settings: Any = config
_functions: Any = cgutils
features = _numba.get_host_cpu_features() if _settings.CPU_FEATURES is None else _settings.CPU_FEATURES
available = {"+vaes", "+avx2", "+aes"} <= set(features.split(","))


def apply(builder: Any, name: str, *vectors: Any) -> Any:
    """A vector that one of LLVM's intrinsics makes of others of the same type."""
    function = ir.FunctionType(vectors[0].type, [vector.type for vector in vectors])
    return builder.call(_functions.get_or_insert_function(builder.module, function, f"llvm.{name}"), vectors)


def _encrypt_step(typing_context: Any, keys: Any, blocks: Any, out: Any, place: Any, onward: Any) -> Any:
    """Encrypt `STEP` numbers of `blocks`, from a place on, to the same place of `out`.

    `onward` is added to the first number of each block before.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def address(array: int, index: Any, kind: Any) -> Any:
            types_of = types.void(signature.args[array], types.uint64)
            number = address_of(context, builder, types_of, (arguments[array], index), 64)
            return builder.bitcast(number, kind.as_pointer())

        def key(number: int) -> Any:
            loaded = builder.load(address(0, NUMBER(2 * number), BLOCK), align=8)
            twice = ir.Constant(ir.VectorType(WORD, 4), [0, 1, 0, 1])
            return builder.shuffle_vector(loaded, ir.Constant(BLOCK, ir.Undefined), twice)

        places = [builder.add(arguments[3], NUMBER(4 * pair)) for pair in range(PAIRS)]
        first, added = key(0), ir.Constant(PAIR, [0, 0, 0, 0])
        for number in (0, 2):
            added = builder.insert_element(added, arguments[4], WORD(number))
        loaded = [builder.add(builder.load(address(1, at, PAIR), align=8), added) for at in places]
        state = [builder.xor(pair, first) for pair in loaded]
        for number in range(1, ROUNDS + 1):
            one_round = "x86.aesni.aesenc.256" if number < ROUNDS else "x86.aesni.aesenclast.256"
            round_key = key(number)
            state = [apply(builder, one_round, pair, round_key) for pair in state]
        for at, pair in zip(places, state, strict=True):
            builder.store(pair, address(2, at, PAIR), align=8)
        return context.get_dummy_value()

    return types.void(keys, blocks, out, types.uint64, types.uint64), generate


encrypt_step: Any = intrinsic(_encrypt_step)


def _substituted(typing_context: Any, word: Any) -> Any:
    """The S-box of each byte: a last round of four equal columns, whose rows do not change when they are shifted."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        four = ir.Constant(ir.VectorType(WORD, 4), ir.Undefined)
        for column in range(4):
            four = builder.insert_element(four, arguments[0], WORD(column))
        zero = ir.Constant(BLOCK, [0, 0])
        found = apply(builder, "x86.aesni.aesenclast", builder.bitcast(four, BLOCK), zero)
        return builder.extract_element(builder.bitcast(found, four.type), WORD(0))

    return types.uint32(types.uint32), generate


substituted: Any = intrinsic(_substituted)


@compiled
def _expand(words: Any) -> None:
    """The key schedule (FIPS 197, 5.2): of 44 words, the first four are the key."""
    constant = np.uint32(1)
    for i in range(4, len(words)):
        word = words[i - 1]
        if i % 4 == 0:
            turned = np.uint32(word >> np.uint32(8)) | np.uint32(word << np.uint32(24))
            word = substituted(np.uint32(turned)) ^ constant
            constant = np.uint32(constant << 1) ^ np.uint32(0x11B if constant & 0x80 else 0)
        words[i] = words[i - 4] ^ word


@compiled
def encrypt_all(keys: Words, blocks: Words, onward: np.uint64, out: Words) -> None:
    """AES of every block under round keys, with `onward` added to the first number of each block."""
    steps = len(blocks) // STEP
    for step in range(steps):
        encrypt_step(keys, blocks, out, np.uint64(step) * np.uint64(STEP), onward)
    done = steps * STEP
    if done < len(blocks):
        last = np.empty(STEP, dtype=np.uint64)
        for i in range(STEP):
            last[i] = blocks[min(done + i, len(blocks) - 1)]
        encrypt_step(keys, last, last, np.uint64(0), onward)
        for i in range(len(blocks) - done):  # to assign slices takes numba seconds to compile
            out[done + i] = last[i]


def encrypt(key: bytes, blocks: Words, out: Words) -> None:
    """AES of every block, two numbers each."""
    encrypt_all(round_keys(key), blocks, np.uint64(0), out)


@lru_cache(maxsize=64)
def round_keys(key: bytes) -> Words:
    """The round keys. They are used only if they encrypt as `cryptography` does."""
    words = np.zeros(4 * (ROUNDS + 1), dtype=np.uint32)
    words[:4] = np.frombuffer(key, dtype="<u4")
    _expand(words)
    keys, blocks = words.view(np.uint64), np.arange(STEP + 2, dtype=np.uint64)
    found = np.empty_like(blocks)
    encrypt_all(keys, blocks, np.uint64(0), found)
    if found.tobytes() != Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks.tobytes()):
        raise RuntimeError("AES by VAES instructions is not AES on this machine")
    return keys
