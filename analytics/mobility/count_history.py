"""The counts a report is made from, and sums of them over windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimates import CONFIDENCE, Estimates
from analytics.estimation.ratios import exact
from analytics.windows.calendar import Window
from analytics.windows.first_reports import ByGap, first_reports
from analytics.windows.presence_noise import noise_error, noise_quantile
from protocols.scheme import Scheme


@dataclass(frozen=True, eq=False)
class CountHistory:
    """Counts of consecutive periods, from `first` on: by attribute, one entry per period.

    `reports` and `supports` (of each value) are exact; `cells` are the reports as they may be published: the same, or
    with noise. They also have those of presence-only reports, if the survey has any.
    """

    scheme: Scheme
    first: int
    reports: Mapping[str, Sequence[ByGap]]
    supports: Mapping[str, Sequence[ByGap]]
    cells: Mapping[str, Sequence[ByGap]]

    @property
    def periods(self) -> range:
        return range(self.first, self.first + len(next(iter(self.cells.values()))))

    def visitors(self, window: Window) -> Estimates:
        """The number of different devices that reported: exact, or with the error of the noise."""
        horizon = self.scheme.survey.horizon
        return self.counted(self.unique(window), sum(horizon - later for later in range(window.length)))

    def unique(self, window: Window) -> int:
        """The sum of the published cells of a window: its number of visitors, which noise may make negative."""
        return sum(self._first_reports(kind, window) for kind in self.scheme.kinds)

    def counted(self, total: int, cells: int) -> Estimates:
        """The sum of so many published cells of each attribute, not below 0: exact, or with the error of the noise."""
        epsilon = self.scheme.survey.presence_epsilon
        if epsilon is None:
            return exact(np.array(max(total, 0)))
        noisy = cells * len(self._presence)
        error, half_width = noise_error(noisy, epsilon), noise_quantile(noisy, epsilon, CONFIDENCE)
        parts = max(total, 0), error, max(total - half_width, 0), max(total + half_width, 0)
        return Estimates(*(np.array(part, dtype=np.float64) for part in parts))

    def gap_counts(self, window: Window) -> NDArray[np.int64]:
        """Published visitors by the gap of their first report in the window; the last entry is new visitors."""
        counts = np.zeros(self.scheme.survey.horizon, dtype=np.int64)
        for cells in self._presence:
            for later in range(window.length):
                period = cells[window.first - self.first + later]
                counted = period.gaps > later
                counts[period.gaps[counted] - 1] += period.counts[counted]
        return counts

    def answers(self, name: str, window: Window) -> int:
        """The number of answers to one attribute, as published."""
        return max(self._first_reports(name, window), 0)

    def supported(self, name: str, window: Window) -> NDArray[np.float64] | None:
        """The exact share of these answers that supports each value; None without answers."""
        place = self._place(window)
        reports = int(first_reports(self.reports[name], *place))
        return first_reports(self.supports[name], *place) / reports if reports else None

    def by_period(self, name: str, periods: range) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each period on its own: the exact supports `[period, value]` and answers `[period]` of one attribute."""
        supports, answers = (table[name] for table in (self.supports, self.reports))
        places = [period - self.first for period in periods]
        return np.array([supports[at].total for at in places]), np.array([answers[at].total for at in places])

    @property
    def _presence(self) -> list[Sequence[ByGap]]:
        """The published cells of devices: a report is counted in one of them."""
        return [self.cells[kind] for kind in self.scheme.kinds]

    def _first_reports(self, name: str, window: Window) -> int:
        """The sum of `first_reports` over published cells, from sums that all windows with the same beginning share."""
        start, length = self._place(window)
        if not 0 <= start <= len(self.periods) - length:
            raise ValueError(f"periods {window.first} to {window.last}; there are {self.periods}")
        if (name, start) not in self._sums:
            later = np.arange(min(len(self.periods) - start, self.scheme.survey.horizon))
            self._sums[name, start] = np.cumsum(self._at_least[name][start + later, later])
        return int(self._sums[name, start][length - 1])

    @cached_property
    def _sums(self) -> dict[tuple[str, int], NDArray[np.int64]]:
        """Of the windows that begin with a period, by length."""
        return {}

    @cached_property
    def _at_least(self) -> dict[str, NDArray[np.int64]]:
        """The published cells `[period, gap - 1]`, each together with all longer gaps."""
        tables = {}
        for name, periods in self.cells.items():
            table = np.zeros((len(periods), self.scheme.survey.horizon), dtype=np.int64)
            for row, period in zip(table, periods, strict=True):
                row[period.gaps - 1] = period.counts
            tables[name] = np.flip(np.cumsum(np.flip(table, axis=1), axis=1), axis=1)
        return tables

    def _place(self, window: Window) -> tuple[int, int]:
        if window.length > self.scheme.survey.horizon:
            raise ValueError(f"a window of {window.length} periods; the horizon is {self.scheme.survey.horizon}")
        return window.first - self.first, window.length
