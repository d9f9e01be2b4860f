"""The encoding of places: the cell is the symbol, and noise moves it over its area."""

from __future__ import annotations

from dataclasses import dataclass

from protocols.arrays.aliases import Column, Floats, Values
from protocols.mechanisms.encodings import Direct, FakeKind, Tables
from protocols.mechanisms.places.rounds import PlaceRound
from protocols.mechanisms.rounds import Round
from protocols.randomness.keystream import Draws


@dataclass(frozen=True)
class Plane(Direct):
    """k cells of a grid, in order: row by row from its first corner."""

    columns: int
    rows: int
    detail: str = ""

    @property
    def terms(self) -> dict[str, int | str]:
        return {"kind": "plane", "columns": self.columns, "rows": self.rows}

    def best_likelihoods(self, noise: Round) -> float:
        return noise.best_guesses if isinstance(noise, PlaceRound) else super().best_likelihoods(noise)

    def memo_tables(self, noise: Round, kind: FakeKind | None = None, fakes: Floats | None = None) -> Tables:
        return (_placed(noise).table,)

    def memoise(self, cells: Values, noise: Round, draws: Draws) -> Column:
        return _placed(noise).sample(cells, draws).astype(self.memo.dtype, copy=False)


def _placed(noise: Round) -> PlaceRound:
    if not isinstance(noise, PlaceRound):
        raise TypeError("places have noise of their own")
    return noise
