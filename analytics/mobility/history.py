"""The counts a report is made from, and what they say of any window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analytics.calendar import Window
from analytics.estimation import CONFIDENCE, Estimates
from analytics.presence_noise import noise_error, noise_reach
from analytics.ratios import exact
from analytics.windows import Counters, all_windows, first_reports
from protocols.scheme import Scheme


@dataclass(frozen=True, eq=False)
class History:
    """Counts of consecutive periods, from `first` on. By attribute:

    `reports[name][period, gap - 1]` and `supports[name][period, gap - 1, value]` are exact and stay inside;
    `cells[name][period, gap - 1]` are the reports as they may be published: the same, or with noise.
    """

    scheme: Scheme
    first: int
    reports: Mapping[str, Counters]
    supports: Mapping[str, Counters]
    cells: Mapping[str, Counters]
    late: NDArray[np.int64] | None = None  # reports that came too late, by period
    presence_lost_before: int | None = None
    confidence: float = CONFIDENCE

    @property
    def periods(self) -> range:
        return range(self.first, self.first + len(self._any(self.cells)))

    @cached_property
    def presence_cells(self) -> Counters:
        """n[period, gap - 1] of devices as published: where each answers one attribute, over all attributes."""
        if self.scheme.discloses:
            return np.asarray(sum(self.cells.values()))
        return self._any(self.cells)

    def visitors(self, window: Window) -> Estimates:
        """How many different devices reported: exact, or with the error of the noise."""
        total = first_reports(self.presence_cells, window.first - self.first, window.length)
        return self.counted(int(total), self._cells_of(window))

    def counted(self, total: int, cells: int) -> Estimates:
        """A sum of so many published cells: exact, or with the error of the noise; never below 0."""
        epsilon = self.scheme.survey.presence_epsilon
        if epsilon is None:
            return exact(np.array(max(total, 0)))
        attributes = len(self.cells) if self.scheme.discloses else 1
        error = noise_error(cells * attributes, epsilon)
        reach = noise_reach(cells * attributes, epsilon, self.confidence)
        parts = max(total, 0), error, max(total - reach, 0), max(total + reach, 0)
        return Estimates(*(np.array(part, dtype=np.float64) for part in parts))

    def all_visitors(self) -> dict[Window, int]:
        """The published number of visitors of every window up to the horizon."""
        totals = all_windows(self.presence_cells)
        last = self.periods[-1]
        return {
            Window(t, t + length): int(totals[t - self.first, length])
            for t in self.periods
            for length in range(totals.shape[1])
            if t + length <= last
        }

    def gap_counts(self, window: Window) -> NDArray[np.int64]:
        """Published visitors by the gap of their first report in the window; the last: not seen for a horizon."""
        counts = np.zeros(self.presence_cells.shape[1], dtype=np.int64)
        for later in range(window.length):
            counts[later:] += self.presence_cells[window.first - self.first + later, later:]
        return counts

    def answers(self, name: str, window: Window) -> tuple[int, int, NDArray[np.float64]]:
        """Of one attribute: answers as published, answers exactly, and exact supports."""
        place = window.first - self.first, window.length
        published, reports = first_reports(self.cells[name], *place), first_reports(self.reports[name], *place)
        return int(published), int(reports), first_reports(self.supports[name], *place).astype(np.float64)

    def shortfall(self, window: Window) -> int | None:
        if self.late is None:
            return None
        return int(self.late[window.first - self.first : window.last - self.first + 1].sum())

    def presence_lost(self, window: Window) -> bool:
        """Whether devices seen before the loss and after it may count twice in this window."""
        lost = self.presence_lost_before
        return lost is not None and window.first < lost <= window.last

    def _cells_of(self, window: Window) -> int:
        horizon = self.scheme.survey.horizon
        return sum(horizon - later for later in range(window.length))

    def _any(self, counters: Mapping[str, Counters]) -> Counters:
        return next(iter(counters.values()))
