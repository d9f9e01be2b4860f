"""What a report is about and what it may say: its windows, which of them are silent, and what they compare with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimates import Estimates
from analytics.estimation.smoothing import smooth
from analytics.mobility.answers import Answers
from analytics.mobility.changes import Changes
from analytics.mobility.history import History
from analytics.mobility.model import Kind, Suppression
from analytics.mobility.suppression import suppressions
from analytics.windows.calendar import UNITS, Window, calendar_windows, cumulative_windows
from protocols.survey import Survey

LONGEST_TRIANGLE = 31


@dataclass(frozen=True, eq=False)
class Truth:
    """What a simulation knows of a window: its visitors, and how many of them have each value."""

    visitors: int
    people: Mapping[str, NDArray[np.integer]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Publication:
    """The windows of a report. Windows that are compared with each other are estimated once."""

    history: History
    kinds: Mapping[Window, Kind]
    baseline: range | None = None
    smoothing: bool = False
    truth: Mapping[Window, Truth] = field(default_factory=dict)
    _answers: dict[tuple[str, Window], Answers] = field(default_factory=dict, init=False, repr=False)

    @property
    def survey(self) -> Survey:
        return self.history.scheme.survey

    @cached_property
    def triangle(self) -> list[Window]:
        return triangle_windows(self.survey, self.history.periods)

    @cached_property
    def silent(self) -> Mapping[Window, Suppression]:
        """The windows of which nothing is said."""
        told = dict.fromkeys([*self.kinds, *self.triangle])
        return suppressions({w: int(self.history.visitors(w).value) for w in told}, self.survey.minimum)

    @cached_property
    def silent_answers(self) -> Mapping[str, Mapping[Window, Suppression]]:
        """The same by attribute: where each device answers one attribute, each has answers of its own."""
        names = [question.name for question in self.history.scheme.questions]
        if not self.history.scheme.discloses:
            return dict.fromkeys(names, self.silent)
        told = [window for window in self.kinds if window not in self.silent]
        return {
            name: {
                **self.silent,
                **suppressions({w: self.history.answers(name, w) for w in told}, self.survey.minimum),
            }
            for name in names
        }

    def answers(self, name: str, window: Window) -> Answers:
        if (name, window) not in self._answers:
            self._answers[name, window] = Answers.of(self.history, name, window)
        return self._answers[name, window]

    def people(self, name: str, window: Window) -> Estimates:
        """The window's visitors by value."""
        answers = self.answers(name, window)
        return answers.people(answers.shares)

    def changes(self, name: str | None = None) -> Changes:
        """Comparisons of visitors, or of an attribute's values where there are answers."""
        if name is None:
            published = {window for window in self.kinds if window not in self.silent}
        else:
            silent = self.silent_answers[name]
            published = {window for window in self.kinds if window not in silent and self.answers(name, window).n}
        return Changes(self.survey.period, self.history.periods, self.baseline, published)

    def smoothed(self, name: str, window: Window) -> Estimates | None:
        """The period's shares, smoothed over all periods of the history; only where that was asked for."""
        if not self.smoothing or window.length > 1:
            return None
        return self._smoothed[name][window.first - self.history.first]

    @cached_property
    def _smoothed(self) -> Mapping[str, Estimates]:
        history, longitudinal = self.history, self.survey.longitudinal
        result = {}
        for question in history.scheme.questions:
            cells, name = history.cells[question.name], question.name
            reports = np.array([period.at_least(1) for period in history.reports[name]])
            supports = np.array([period.at_least(1) for period in history.supports[name]])
            n = np.where(reports > 0, np.array([period.at_least(1) for period in cells]).clip(min=0), 0)
            supported = supports / np.maximum(reports, 1)[:, None]
            memo = question.memo_channel if longitudinal else None
            result[question.name] = smooth(
                supported * n[:, None], n, question.channel, memo, confidence=history.confidence
            )
        return result


def standard_windows(survey: Survey, periods: range) -> dict[Window, Kind]:
    """Every period, whole hours, days and weeks, and the days since the beginning: each with its kind."""
    kinds: dict[Window, Kind] = {Window(t, t): "period" for t in periods}
    for unit in UNITS:
        for window in calendar_windows(survey, periods, unit):
            kinds.setdefault(window, unit)
    if periods.start == 0:  # a later beginning is none: it would move along with what happens to be known
        for window in cumulative_windows(calendar_windows(survey, periods, "day"), survey.horizon):
            kinds.setdefault(window, "cumulative")
    return kinds


def triangle_windows(survey: Survey, periods: range) -> list[Window]:
    """Every run of the last days up to the horizon; of periods, where the horizon does not reach over two whole days.

    Which of them it is depends on the survey alone, so that the triangles of successive reports fit together.
    """
    two_days = range(2 * UNITS["day"] // survey.period)
    by_day = len(two_days) <= survey.horizon and calendar_windows(survey, two_days, "day")
    steps = (calendar_windows(survey, periods, "day") if by_day else [Window(t, t) for t in periods])[
        -LONGEST_TRIANGLE:
    ]
    runs = [Window(begin.first, end.last) for place, begin in enumerate(steps) for end in steps[place:]]
    return [run for run in runs if run.length <= survey.horizon]


def chosen_windows(survey: Survey, periods: range, windows: Iterable[Window] | None) -> dict[Window, Kind]:
    """The windows asked for, each with its kind; the standard ones by default."""
    standard = standard_windows(survey, periods)
    return standard if windows is None else {window: standard.get(window, "window") for window in windows}
