"""How a value becomes something noise can be added to, and which values an answer supports.

An encoding knows nothing of budgets. It turns a value into a *cell* (what is memoised: the value itself, or its hash,
or its bucket), a cell into a column, adds the noise of a round, and counts what answers support.

    Direct    the value is a symbol                    GRR, truncated geometric
    Unary     the value is a one-hot vector of bits    SUE, OUE

Encodings with something that a device keeps for life are in `lifelong`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from protocols.columns import Column, Layout, PackedBits, Symbols
from protocols.kernels import count_bits, count_symbols
from protocols.keystream import Draws
from protocols.rounds import Blur, Flip, Matrix, Round
from protocols.sampling import Bits, Rows, Table

Values = NDArray[np.integer[Any]]
Counts = NDArray[np.int64]
Traits = NDArray[np.integer[Any]] | None
Groups = NDArray[np.integer[Any]]


class Encoding(Protocol):
    """What every encoding can do. `traits` are what a device keeps for life (its hash, its buckets), or None."""

    @property
    def k(self) -> int: ...
    @property
    def exclusive(self) -> bool: ...
    @property
    def states(self) -> int:
        """How many memos a device can ever have."""
        ...

    @property
    def memo(self) -> Layout: ...
    @property
    def answer(self) -> Layout: ...
    def seen(self, flip: Flip) -> Flip:
        """The support channel of an answer whose column went through `flip`."""
        ...

    def together(self, flip: Flip) -> Callable[[NDArray[np.float64]], Matrix] | None:
        """How often an answer supports two values at once, where lifelong traits tie them; else None."""
        ...

    def traits(self, draws: Draws) -> Traits: ...
    def cells(self, values: Values, traits: Traits) -> Values: ...
    def encode(self, cells: Values) -> Column: ...
    def fake(self, distribution: NDArray[np.float64] | None, first: Round, draws: Draws) -> Column: ...
    def perturb(self, column: Column, noise: Round, draws: Draws) -> Column: ...
    def finish(self, column: Column, traits: Traits) -> Column: ...
    def count(self, answers: Column, groups: Groups, size: int) -> Counts: ...


class _Plain:
    """What holds wherever the memo looks like the answer and a device keeps nothing for life."""

    def seen(self, flip: Flip) -> Flip:
        return flip

    def together(self, flip: Flip) -> None:
        return None

    def traits(self, draws: Draws) -> Traits:
        return None

    def cells(self, values: Values, traits: Traits) -> Values:
        return values

    def finish(self, column: Column, traits: Traits) -> Column:
        return column


@dataclass(frozen=True)
class Direct(_Plain):
    """The value is the symbol."""

    k: int
    exclusive = True

    @property
    def states(self) -> int:
        return self.k

    @property
    def memo(self) -> Symbols:
        return Symbols(self.k)

    @property
    def answer(self) -> Symbols:
        return Symbols(self.k)

    def encode(self, cells: Values) -> Column:
        return cells.astype(self.memo.dtype)

    def fake(self, distribution: NDArray[np.float64] | None, first: Round, draws: Draws) -> Column:
        if distribution is None:
            raise ValueError("a direct encoding has no zero vector to fake with")
        return _from(distribution).sample(draws).astype(self.memo.dtype, copy=False)

    def perturb(self, column: Column, noise: Round, draws: Draws) -> Column:
        if isinstance(noise, Blur):
            return _rows(noise).sample(column, draws).astype(self.memo.dtype, copy=False)
        # The lie is relative: shift by 0 with p, by each other amount with q. One table serves all values.
        shifted = column.astype(np.uint32) + _shifts(self.k, noise).sample(draws)
        shifted -= (shifted >= self.k) * np.uint32(self.k)
        return shifted.astype(self.memo.dtype)

    def count(self, answers: Column, groups: Groups, size: int) -> Counts:
        return count_symbols(answers, groups, size, self.k)


@dataclass(frozen=True)
class Unary(_Plain):
    """The value is the one bit set among k."""

    k: int
    exclusive = False

    @property
    def states(self) -> int:
        return self.k

    @property
    def memo(self) -> PackedBits:
        return PackedBits(self.k)

    @property
    def answer(self) -> PackedBits:
        return PackedBits(self.k)

    def encode(self, cells: Values) -> Column:
        column = np.zeros((len(cells), self.memo.bytes), dtype=np.uint8)
        column[np.arange(len(cells)), cells >> 3] = np.left_shift(1, cells & 7).astype(np.uint8)
        return column

    def fake(self, distribution: NDArray[np.float64] | None, first: Round, draws: Draws) -> Column:
        """The vector of a value nobody has (None: of no value at all), perturbed like a true one."""
        if distribution is None:
            encoded: Column = np.zeros((len(draws), self.memo.bytes), dtype=np.uint8)
        else:
            encoded = self.encode(_from(distribution).sample(draws.fork(2)).astype(np.int64))
        return self.perturb(encoded, first, draws)

    def perturb(self, column: Column, noise: Round, draws: Draws) -> Column:
        if isinstance(noise, Blur):
            raise TypeError("a unary encoding takes bit flips, not a matrix")
        if noise.p + noise.q == 1:
            return column ^ _bits(noise.q, self.k).sample(draws)
        ones = _bits(noise.p, self.k).sample(draws)
        zeros = _bits(noise.q, self.k).sample(draws.fork(1))
        return (column & ones) | (~column & zeros)

    def count(self, answers: Column, groups: Groups, size: int) -> Counts:
        return count_bits(answers, groups, size, self.k)


@lru_cache(maxsize=256)
def _shifts(k: int, flip: Flip) -> Table:
    return Table([flip.p] + [flip.q] * (k - 1))


def _from(distribution: NDArray[np.float64]) -> Table:
    return _table(tuple(distribution.tolist()))


@lru_cache(maxsize=256)
def _table(probabilities: tuple[float, ...]) -> Table:
    return Table(probabilities)


@lru_cache(maxsize=256)
def _bits(p: float, k: int) -> Bits:
    return Bits(p, k)


@lru_cache(maxsize=64)
def _rows(blur: Blur) -> Rows:
    return Rows(blur.matrix)
