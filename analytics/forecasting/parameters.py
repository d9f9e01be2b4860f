"""The parameters of a model: variances and the memory of the deviation, on a grid.

A fit is rounded to the grid before it is used: variances to eighths of a power of two, relative to a scale that is a
power of two itself, and the deviation's memory to a table. So two machines whose logarithms differ in the last digit
have the same parameters, and a forecast can say in a few small integers which ones it used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.forecasting.structure import DEVIATION, FIRST_HARMONIC, LEVEL, Structure
from protocols.arrays import Floats

STEPS = 8  # grid points for each doubling of a variance
SMALLEST, LARGEST = -30.0, 8.0  # logarithms of base 2 of variances, in units of the scale
MEMORY_STEPS = 4  # grid points for each halving of what an AR(1) forgets in a period
LONGEST_MEMORY = 10.0  # at most 1 - 2^-10


@dataclass(frozen=True)
class Parameters:
    """Integers on the grid. `scale` is the logarithm of base 2 of the unit in which the series is measured."""

    scale: int
    level: int
    deviation: int
    memory: int
    irregular: int
    seasons: tuple[int, ...]

    @staticmethod
    def rounded(scale: int, point: Floats) -> Parameters:
        """The grid point next to logarithms of base 2: level, deviation, memory, irregular, seasons."""
        logs = clipped(point)
        level, deviation, irregular, *seasons = (round(float(log) * STEPS) for log in np.delete(logs, 2))
        memory = round(float(logs[2]) * MEMORY_STEPS)
        return Parameters(scale, level, deviation, memory, irregular, tuple(seasons))

    @property
    def point(self) -> Floats:
        """The logarithms of base 2, as a fit begins with them."""
        logs = [self.level, self.deviation, 0, self.irregular, *self.seasons]
        point = np.array(logs, dtype=np.float64) / STEPS
        point[2] = self.memory / MEMORY_STEPS
        return point

    def noise(self, structure: Structure) -> tuple[Floats, float, float]:
        """The variances of the steps of all states, the decay of the deviation, and the irregular variance."""
        return noise(self.point, 2.0**self.scale, structure)


def clipped(point: Floats) -> Floats:
    """The point, with every coordinate within the grid."""
    logs = np.clip(point, SMALLEST, LARGEST)
    logs[2] = np.clip(point[2], 0.0, LONGEST_MEMORY)
    return logs


def noise(point: Floats, unit: float, structure: Structure) -> tuple[Floats, float, float]:
    """As `Parameters.noise`, from logarithms that need not be on the grid."""
    logs = clipped(point)
    variances = np.exp2(logs) * unit * unit
    q = np.empty(structure.size)
    q[LEVEL], q[DEVIATION] = variances[0], variances[1]
    q[FIRST_HARMONIC:] = variances[4:][structure.groups]
    return q, float(1 - np.exp2(-logs[2])), float(variances[3])
