"""The encoding of places: the cell is the symbol, and noise moves it over the grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protocols.arrays.aliases import Column, Counts, Floats, Mask, Values, Whole
from protocols.arrays.columns import Symbols
from protocols.arrays.counting import count_symbols
from protocols.mechanisms.encodings import FakeKind, Plain, Tables
from protocols.mechanisms.places.displacement import PlanarRound
from protocols.mechanisms.places.law import cuts
from protocols.mechanisms.places.losses import best_guesses
from protocols.mechanisms.rounds import MatrixRound, Round
from protocols.randomness.keystream import Draws


@dataclass(frozen=True)
class Plane(Plain):
    """Cells of a grid, row by row from its first corner: cell = row * columns + column."""

    columns: int
    rows: int
    exclusive = True
    widths = 0

    @property
    def k(self) -> int:
        return self.columns * self.rows

    @property
    def states(self) -> int:
        return self.k

    @property
    def detail(self) -> str:
        return f"{self.columns} x {self.rows} cells"

    @property
    def terms(self) -> dict[str, int | str]:
        return {"kind": "plane", "columns": self.columns, "rows": self.rows}

    @property
    def memo(self) -> Symbols:
        return Symbols(self.k)

    @property
    def answer(self) -> Symbols:
        return Symbols(self.k)

    def best_likelihoods(self, noise: Round) -> float:
        if isinstance(noise, PlanarRound):
            return best_guesses(noise)
        return float(_matrix(noise).max(axis=0).sum())

    def memo_tables(self, noise: Round, kind: FakeKind | None = None, fakes: Floats | None = None) -> Tables:
        return (cuts(self.columns, self.rows, _planar(noise).rate)[None],)

    def report_tables(self, noise: Round) -> Tables:
        return self.memo_tables(noise)

    def memoise(self, cells: Values, noise: Round, draws: Draws) -> Column:
        return _planar(noise).sample(cells, draws)

    def hide(
        self, cells: Values, own: Mask, kind: FakeKind, fakes: Floats | None, noise: Round, draws: Draws
    ) -> Column:
        raise ValueError("places are not hidden among fakes")

    def perturb(self, memo: Column, noise: Round, draws: Draws) -> Column:
        return self.memoise(memo, noise, draws)

    def count(self, answers: Column, groups: Whole, size: int) -> Counts:
        return count_symbols(answers, groups, size, self.k)

    def count_widths(self, answers: Column) -> Counts:
        return np.zeros(0, dtype=np.int64)


def _planar(noise: Round) -> PlanarRound:
    if not isinstance(noise, PlanarRound):
        raise TypeError("places are displaced over a grid")
    return noise


def _matrix(noise: Round) -> Floats:
    if not isinstance(noise, MatrixRound):
        raise TypeError("places are displaced over a grid")
    return noise.matrix
