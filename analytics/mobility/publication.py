"""What is published of a period where everything is published: its windows, made from counts by gap or flags."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from analytics.estimation.estimates import Estimates, exact
from analytics.mobility.answers import Answers
from analytics.mobility.count_history import CountHistory
from analytics.windows import Window, WindowSum, standard_windows, triangle_windows
from protocols.survey import UNITS, CalendarVisits, Survey, Unit

SO_FAR: Mapping[Unit, str] = {
    "day": "day so far", "week": "week so far", "month": "month so far", "year": "year so far", "ever": "ever",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Publication:
    """All windows of the periods that a report is made from.

    A report covers the windows that end with its last period.

    `estimated` are the answers to attributes in windows that were estimated before.
    """

    history: CountHistory
    estimated: dict[tuple[str, Window], Answers] = field(default_factory=dict)

    @property
    def survey(self) -> Survey:
        return self.history.scheme.survey

    @cached_property
    def kinds(self) -> Mapping[Window, str]:
        units = {window: unit if self._is_over(unit) else SO_FAR[unit] for unit, window in self._ends.items()}
        known = standard_windows(self.survey, self.history.periods)
        return known | {window: unit for window, unit in units.items() if window not in known}

    @cached_property
    def units(self) -> Mapping[Window, WindowSum]:
        """The sums of calendar units that end, or go on, with the last period; of windows with one period none."""
        held, standard = self.history.units, standard_windows(self.survey, self.history.periods)
        return {window: held[unit] for unit, window in self._ends.items() if window not in standard}

    @cached_property
    def _ends(self) -> dict[Unit, Window]:
        """Of calendar units, the periods through the last one.

        Several units may have the same periods so far. Then the last one names them: of those that are over, if there
        are any, the shortest.
        """
        period, held = self.history.periods[-1], self.history.units
        longest_first = [unit for unit in reversed(UNITS) if unit in held]
        known = sorted(longest_first, key=self._is_over)
        return {unit: Window(held[unit].first, period) for unit in known}

    def _is_over(self, unit: Unit) -> bool:
        visits, period = self.survey.visits, self.history.periods[-1]
        return isinstance(visits, CalendarVisits) and visits.last(unit, period) == period

    @cached_property
    def triangle(self) -> list[Window]:
        return triangle_windows(self.survey, self.history.periods)

    def answers(self, name: str, window: Window) -> Answers:
        """The answers to an attribute in a window: each is estimated once."""
        if (name, window) not in self.estimated:
            self.estimated[name, window] = self._answers(name, window)
        return self.estimated[name, window]

    def _answers(self, name: str, window: Window) -> Answers:
        unit = self.units.get(window)
        if unit is None:
            return Answers.of(self.history, name, window)
        return Answers(self.history.scheme.question(name), unit.n[name], unit.N[name], self.visitors(window))

    def visitors(self, window: Window) -> Estimates:
        """The different devices of a window."""
        unit = self.units.get(window)
        if unit is None:
            return self.history.visitors(window)
        return exact(np.asarray(unit.devices(self.history.scheme.kinds)))
