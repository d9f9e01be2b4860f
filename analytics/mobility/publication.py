"""What is published of a period: its windows, and which of them are suppressed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from analytics.mobility.answers import Answers
from analytics.mobility.count_history import CountHistory
from analytics.mobility.model import Kind, Suppression
from analytics.windows.calendar import UNITS, Window, calendar_windows
from analytics.windows.units import UnitSum
from protocols.survey import DAY, CalendarVisits, Survey, Unit

LONGEST_TRIANGLE = 31
SO_FAR: Mapping[Unit, Kind] = {
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
    def kinds(self) -> Mapping[Window, Kind]:
        units = {window: unit if self._is_over(unit) else SO_FAR[unit] for unit, window in self._ends.items()}
        known = self.standard_windows
        return known | {window: unit for window, unit in units.items() if window not in known}

    @cached_property
    def standard_windows(self) -> dict[Window, Kind]:
        """Every period, whole hours, days and weeks, and the days since the beginning: each with its kind."""
        survey, periods = self.survey, self.history.periods
        kinds: dict[Window, Kind] = {Window(t, t): "period" for t in periods}
        for unit in UNITS:
            for window in calendar_windows(survey, periods, unit):
                kinds.setdefault(window, unit)
        if periods.start == 0:  # the first period that is still known moves along; only period 0 is a fixed beginning
            days = calendar_windows(survey, periods, "day")
            for window in (Window(days[0].first, later.last) for later in days[1:]):
                if window.length <= survey.horizon:
                    kinds.setdefault(window, "cumulative")
        return kinds

    @cached_property
    def units(self) -> Mapping[Window, UnitSum]:
        """The sums of calendar units that end, or go on, with the last period; of windows with one period none."""
        held = self.history.units
        return {w: held[unit] for unit, w in self._ends.items() if unit in held and w not in self.standard_windows}

    @cached_property
    def _ends(self) -> dict[Unit, Window]:
        """Of calendar units, the periods through the last one: if they are published, or over.

        Several units may have the same periods so far. Then the last one names them: of those that are over, if there
        are any, the shortest.
        """
        visits, period, held = self.survey.visits, self.history.periods[-1], self.history.units
        if not isinstance(visits, CalendarVisits):
            return {}
        known = {unit: held[unit].first if unit in held else visits.first(unit, period) for unit in visits.units[::-1]}
        shown = [unit for unit in known if unit in held or self._is_over(unit)]
        return {unit: Window(known[unit], period) for unit in sorted(shown, key=self._is_over)}

    def _is_over(self, unit: Unit) -> bool:
        visits, period = self.survey.visits, self.history.periods[-1]
        return isinstance(visits, CalendarVisits) and visits.last(unit, period) == period

    @cached_property
    def triangle(self) -> list[Window]:
        return triangle_windows(self.survey, self.history.periods)

    def answers(self, name: str, window: Window) -> Answers:
        """The answers to an attribute in a window: each is estimated once."""
        if (name, window) not in self.estimated:
            found, asked = self.units.get(window), self.history.scheme.question(name)
            self.estimated[name, window] = (
                Answers.of(self.history, name, window)
                if found is None
                else Answers(asked, found.n[name], found.N[name], self.history.of_unit(found)[0])
            )
        return self.estimated[name, window]

    def suppression(self, window: Window) -> Suppression | None:
        """Why nothing is published of a window.

        Counts without noise are released or not before windows are made of them. With noise, what follows is for
        readers, who could do nothing with so small numbers.
        """
        unit = self.units.get(window)
        if unit is not None:
            visitors = self.survey.minimum if unit.agreed is None else unit.agreed[0]
        elif window not in self.standard_windows and window not in self.triangle:
            return "minimum"
        elif self.history.agreed is None:
            return self.history.suppression(window)
        else:
            visitors = self.history.unique(window)
        return "minimum" if max(visitors, 0) < self.survey.minimum else None

    def suppression_of(self, name: str, window: Window) -> Suppression | None:
        """Why no answers to an attribute are published in a window that is: with noise, there may be too few."""
        few = self.history.agreed is not None and self.history.answers(name, window) < self.survey.minimum
        return "minimum" if few else None


def triangle_windows(survey: Survey, periods: range) -> list[Window]:
    """Every run of the last days up to the horizon; of periods, where the horizon is shorter than two whole days.

    Whether it is days or periods depends on the survey alone, so that the triangles of successive reports fit together.
    """
    by_day = not DAY % survey.period and 2 * DAY // survey.period <= survey.horizon
    steps = calendar_windows(survey, periods, "day") if by_day else [Window(t, t) for t in periods]
    steps = steps[-LONGEST_TRIANGLE:]
    runs = [Window(begin.first, end.last) for place, begin in enumerate(steps) for end in steps[place:]]
    return [run for run in runs if run.length <= survey.horizon]
