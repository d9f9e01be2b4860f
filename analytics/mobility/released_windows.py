"""The released numbers of the windows that end with a period, as estimates."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analytics.estimation.estimates import Estimates, exact
from analytics.estimation.noised import released_number
from analytics.estimation.votes import CellNoise
from analytics.mobility.answers import Answers
from analytics.mobility.model import VISITS, Counted
from analytics.windows import Table, Tables, Window, WindowNumbers, triangle_windows
from protocols.privacy import REPORTS, SeriesName
from protocols.scheme import Scheme


@dataclass(frozen=True, eq=False)
class ReleasedWindows:
    """What is released of the windows that end with a period; `tables` are the answers of the period itself."""

    scheme: Scheme
    period: int
    windows: Sequence[WindowNumbers]
    tables: Tables

    def number(self, window: WindowNumbers, name: str) -> Estimates | None:
        """Its `visitors`, `new` or `returning` devices; None where they are not released."""
        number = getattr(window, name)
        return None if number is None else released_number(number, self._scales(window, name))

    def _scales(self, window: WindowNumbers, name: str) -> list[float]:
        """Those of the noises that a number has."""
        if name == "returning":  # visitors less new ones
            return [*self._scales(window, "visitors"), *self._scales(window, "new")]
        noise = self.scheme.presence
        if noise is None:
            return []
        if window.kind == "ever":
            largest = noise.released.new[-1]
            return [noise.scales[SeriesName("new", largest)]] * window.noises
        if name == "new":
            return [noise.scales[SeriesName("new", window.kind)]]
        if window.kind == "period":
            return [noise.scales[REPORTS]]
        series = SeriesName("visitors", window.kind)
        rolling = SeriesName("rolling", window.kind)
        return [noise.scales[series if series in noise.scales else rolling]]

    def answers(self, window: WindowNumbers) -> dict[str, Answers]:
        """The answers that are released of a window, by question."""
        visitors = self.number(window, "visitors")
        if window.kind == "period":
            return self._answered(self.tables, "period", visitors)
        if window.firsts:
            return self._answered(window.firsts, window.kind, visitors)
        mean = {name: _mean(table) for name, table in window.visits.items()}
        return self._answered(mean, "period", self._mean_visits(window), self.visits(window))

    def _answered(
        self, tables: Tables, of: str, devices: Estimates | None, reports: Estimates | None = None
    ) -> dict[str, Answers]:
        """Answers from tables with the noise of those of periods, or of a unit."""
        population = exact(np.array(np.inf)) if devices is None else devices
        found = {}
        for question in self.scheme.questions:
            table = tables.get(question.name)
            if table is not None:
                noise = CellNoise.of(self.scheme, question.name, of)
                found[question.name] = Answers(question, max(table.n, 0), table.N, population, noise, reports)
        return found

    def counted(self, window: WindowNumbers) -> Counted:
        """What the answers of a window are counted by."""
        if window.kind == "period":
            return "value in the period"
        return "first value in the window" if window.firsts else VISITS

    def visits(self, window: WindowNumbers) -> Estimates | None:
        """All reports of a window of several periods, as far as their answers are released."""
        if window.kind == "period" or not window.visits:
            return None
        total = 0
        periods = 0
        for kind in self._kinds_of(window):
            total += window.visits[kind].n
            periods += window.visits[kind].periods
        return released_number(total, self._scales_of_answers(periods))

    def _kinds_of(self, window: WindowNumbers) -> list[str]:
        return [kind for kind in self.scheme.kinds if kind in window.visits]

    def _scales_of_answers(self, periods: int) -> list[float]:
        noise = self.scheme.presence
        scale = None if noise is None else noise.answers_scale()
        return [] if scale is None else [scale] * periods

    def _mean_visits(self, window: WindowNumbers) -> Estimates | None:
        """The reports of an average period of a window."""
        visits = self.visits(window)
        if visits is None:
            return None
        periods = max(table.periods for table in window.visits.values())
        return Estimates(*(part / periods for part in visits.parts))

    def is_rolling(self, window: WindowNumbers) -> bool:
        """Whether a window is one of the last days; its kind is the name of the series."""
        return window.kind in {rolling.name for rolling in self.scheme.survey.released.rolling}

    @cached_property
    def triangle(self) -> list[Window]:
        """The runs that end with the period, which surveys with exact numbers by gaps have."""
        survey = self.scheme.survey
        if survey.visitors is not None or survey.presence_epsilon is not None:
            return []
        near = range(max(0, self.period - survey.horizon + 1), self.period + 1)
        return [run for run in triangle_windows(survey, near) if run.last == self.period]


def _mean(table: Table) -> Table:
    """The table of an average period.

    Its error is at least the mean of the errors of the periods, and so an upper bound of that of the sum: devices that
    answer with the same memo in all of them do not average out.
    """
    return Table(round(table.n / table.periods), np.rint(table.N / table.periods).astype(np.int64))
