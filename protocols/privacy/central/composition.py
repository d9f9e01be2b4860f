"""Losses of many periods together: convolutions on a grid, rounded up (PROTOCOLS 11)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, expm1, inf, log, log1p

import numpy as np

from protocols.arrays.aliases import Floats

CUT = 1e-13  # the chance of sums that may wrap around, at either end; it is added to delta
ROUNDING = 1e-15  # what Fourier transforms get wrong at a grid point, at most


@dataclass(frozen=True, eq=False)
class Losses:
    """How likely each privacy loss is: `mass` at multiples of `step` from the `first` one on, the rest infinite."""

    step: float
    first: int
    mass: Floats
    infinite: float

    @property
    def values(self) -> Floats:
        return np.asarray((np.arange(len(self.mass)) + self.first) * self.step)

    def delta(self, eps: float) -> float:
        over = self.values - eps
        return float(self.infinite - (self.mass * np.expm1(-np.maximum(over, 0))).sum())

    def epsilon(self, delta: float, most: float) -> float:
        """The least epsilon for a delta, rounded up, or `most`."""
        low, high = 0.0, most
        for _ in range(45 if self.infinite <= delta else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high


def together(parts: Sequence[tuple[Losses, int]]) -> Losses:
    """Of several releases, each so many times, on grids of the same step."""
    step = parts[0][0].step
    assert all(losses.step == step for losses, _ in parts), "losses on other grids"
    up, down = (ceil(_tail(parts, sign)) + 2 for sign in (1, -1))
    size = 1 << (max(up + down + 2, *(len(losses.mass) for losses, _ in parts)) - 1).bit_length()
    transformed = np.ones(size // 2 + 1, dtype=np.complex128)
    for losses, times in parts:
        wrapped = np.zeros(size)
        wrapped[(np.arange(len(losses.mass)) + losses.first) % size] = losses.mass
        transformed *= np.fft.rfft(wrapped) ** times
    mass = np.roll(np.maximum(np.fft.irfft(transformed, size), 0), size - 1 - up)  # the last is `up`
    infinite = -expm1(sum(times * log1p(-min(losses.infinite, 0.5)) for losses, times in parts))
    return Losses(step, up + 1 - size, mass, infinite + 2 * CUT + ROUNDING * size)


def _tail(parts: Sequence[tuple[Losses, int]], sign: int) -> float:
    """How many steps a sum of losses, or of their negatives, exceeds with a chance of `CUT` at most (Chernoff)."""
    least = inf
    for rate in np.geomspace(1e-6, 1, 80).tolist():
        exponents = [sign * rate * (np.arange(len(losses.mass)) + losses.first) for losses, _ in parts]
        if max(float(np.abs(each).max()) for each in exponents) < 700:
            logs = (n * log(losses.mass @ np.exp(each)) for (losses, n), each in zip(parts, exponents, strict=True))
            least = min(least, (sum(logs) - log(CUT)) / rate)
    return least
