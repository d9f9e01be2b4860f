"""What a report says about its device's earlier reports: an axis along which reports are counted.

It is one small number. Either the *gap*, how many periods ago the device last reported, up to the survey's horizon;
or, in a survey with `visitors`, *flags*: a bit for each calendar unit in which this is the device's first report.
Wire, counters, finals and noise treat both alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np

from protocols.arrays.aliases import Bytes, Column, Mask, Whole

NEVER = -1
"""In place of the last period in which a device reported."""


class Visits(ABC):
    """One of both axes."""

    column: str
    """Its name on the wire."""
    wire: np.dtype[Any]
    """How a single report writes it: unsigned, big-endian."""
    cells: Whole
    """All numbers that can occur, ascending."""

    @abstractmethod
    def of(self, last: Whole, period: int) -> Column:
        """What devices report in a period that reported before in `last`, or `NEVER`."""

    @abstractmethod
    def good(self, numbers: Column, period: int) -> Mask:
        """Which of these numbers a report of this period can have."""

    @abstractmethod
    def previous(self, number: int, period: int) -> range:
        """The periods in one of which a device reported last that reports this number; none if that is not known."""

    def read(self, raw: bytes | Bytes) -> Column:
        """The numbers of single reports, as they were written."""
        return np.frombuffer(raw, self.wire).astype(self.wire.newbyteorder("="))


class GapVisits(Visits):
    """Gaps of 1 .. horizon periods; the horizon also stands for longer ones, and for never."""

    column, wire = "gap", np.dtype(">u2")

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        self.cells: Whole = np.arange(1, horizon + 1)

    def of(self, last: Whole, period: int) -> Column:
        """
        >>> GapVisits(7).of(np.array([4, NEVER, 1]), 5).tolist()
        [1, 7, 4]
        """
        gaps = np.where(last == NEVER, self.horizon, np.clip(period - last, 1, self.horizon))
        return gaps.astype(np.uint16)

    def good(self, numbers: Column, period: int) -> Mask:
        return np.asarray((numbers >= 1) & (numbers <= self.horizon))

    def previous(self, number: int, period: int) -> range:
        return range(period - number, period - number + 1) if number < self.horizon else range(0)


@lru_cache(maxsize=256)
def visits_of(horizon: int) -> Visits:
    """The axis of a survey, kept."""
    return GapVisits(horizon)
