"""A mechanism: an encoding and one or two rounds of noise."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from protocols.arrays.aliases import Column, Floats, Values
from protocols.mechanisms.channels import SupportChannel
from protocols.mechanisms.encodings import Direct, Encoding, Unary
from protocols.mechanisms.places.rounds import PlaceRound, PlanarChannel
from protocols.mechanisms.rounds import Flip, MatrixRound, Round
from protocols.randomness.keystream import Draws

Calibration = Literal["exact", "published"]
Channel = SupportChannel | MatrixRound | PlanarChannel


@dataclass(frozen=True)
class Budget:
    """What one attribute may spend: `inf` for all reports of one value together, `one` for a single report.

    `one` is None where there is a single round: one-shot surveys, and those that send the memo itself.
    """

    inf: float
    one: float | None = None
    calibration: Calibration = "exact"


@dataclass(frozen=True)
class Mechanism:
    """An encoding with its rounds: `first` is memoised (or drawn per report), `second` perturbs the memo."""

    name: str
    encoding: Encoding
    first: Round
    second: Round | None = None

    @property
    def one_report(self) -> Round:
        """Both rounds as one."""
        if self.second is None:
            return self.first
        if isinstance(self.first, Flip) and isinstance(self.second, Flip):
            return self.first.then(self.second)
        assert isinstance(self.first, MatrixRound) and isinstance(self.second, MatrixRound)
        return self.first.then(self.second)

    def of_sets(self, several: int) -> "Mechanism":
        """The same for one element of a set, which is drawn from this number of elements."""
        encoding = self.encoding
        assert isinstance(encoding, Direct | Unary), "other encodings show what does not depend on the element"
        return replace(self, encoding=replace(encoding, several=several))

    def memoise(self, cells: Values, draws: Draws) -> Column:
        """Round 1 over cells."""
        return self.encoding.inner.memoise(cells, self.first, draws)

    def report(self, memo: Column, draws: Draws) -> Column:
        """Round 2 over memos; without one, the memo is the report."""
        return memo if self.second is None else self.encoding.inner.perturb(memo, self.second, draws)

    def channel(self, share: float = 1.0, fake: Floats | None = None) -> Channel:
        """The channel of one report; `share` and `fake` as in SupportChannel."""
        if isinstance(self.first, PlaceRound):
            return PlanarChannel(tuple(noise for noise in (self.first, self.second) if isinstance(noise, PlaceRound)))
        noise, encoding = self.one_report, self.encoding
        if isinstance(noise, MatrixRound):
            return noise
        together, among = encoding.together(noise), encoding.among(noise)
        seen, several = encoding.seen(noise), encoding.several
        slots = several if encoding.exclusive and encoding.lifelong else 0
        return SupportChannel(encoding.k, seen, encoding.exclusive, share, fake, together, among, several, slots)


Builder = Callable[[Any, Budget, int | None], Mechanism]
"""Makes a mechanism for k values and a budget, or for the places of an area and a budget per cell side; the last
argument is the parameter that the mechanism's record names."""
