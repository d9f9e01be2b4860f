"""What is published of a period: its windows, which of them are suppressed, and its smoothed shares."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt

import numpy as np

from analytics.estimation.estimates import Estimates
from analytics.estimation.noised import CellNoise
from analytics.estimation.smoothing import smooth
from analytics.mobility.answers import Answers
from analytics.mobility.count_history import CountHistory
from analytics.mobility.model import Kind, Suppression
from analytics.windows.calendar import UNITS, Window, calendar_windows, cumulative_windows
from protocols.survey import DAY, Survey

FEWEST_ERRORS = 4  # by which a number of answers with noise must exceed 0 for its period to be smoothed
MOST_SMOOTHED = 32  # periods: with more, intervals get hardly narrower and finals slower
LONGEST_TRIANGLE = 31


def smoothed_shares(history: CountHistory, suppressed: Mapping[str, Container[Window]]) -> dict[str, Estimates]:
    """The shares in the last period, by attribute; of those that have answers in it, and in an earlier one.

    Suppressed periods are left out, and periods whose number of answers is not known well enough for an estimate.
    """
    periods = history.periods[-MOST_SMOOTHED:]
    visitors = float(history.visitors(Window(periods[-1], periods[-1])).value)
    found: dict[str, Estimates] = {}
    for question in history.scheme.questions:
        if question.attribute.placed:  # shares of places are not sums over reports, which could be smoothed
            continue
        counts, n = history.by_period(question.name, periods)
        noise = CellNoise.of(history.scheme, question.name)
        if noise is not None:
            n[n < FEWEST_ERRORS * sqrt(noise.reports)] = 0
        n[[Window(t, t) in suppressed[question.name] for t in periods]] = 0
        if np.count_nonzero(n) >= 2 and n[-1]:
            memo_channel = question.memo_channel if history.scheme.survey.longitudinal else None
            found[question.name] = smooth(counts, n, question.channel, memo_channel, visitors, noise)
    return found


@dataclass(frozen=True, eq=False)
class Publication:
    """All windows of the periods that a report is made from.

    A report covers the windows that end with its last period.

    `estimated` are the answers to attributes in the last period, if they were estimated before.
    """

    history: CountHistory
    estimated: Mapping[str, Answers] = field(default_factory=dict)

    @property
    def survey(self) -> Survey:
        return self.history.scheme.survey

    @cached_property
    def kinds(self) -> Mapping[Window, Kind]:
        return standard_windows(self.survey, self.history.periods)

    @cached_property
    def triangle(self) -> list[Window]:
        return triangle_windows(self.survey, self.history.periods)

    def answers(self, name: str, window: Window) -> Answers:
        """The answers to an attribute in a window: each is estimated once."""
        if (name, window) not in self._answers:
            self._answers[name, window] = Answers.of(self.history, name, window)
        return self._answers[name, window]

    @cached_property
    def _answers(self) -> dict[tuple[str, Window], Answers]:
        last = self.history.periods[-1]
        return {(name, Window(last, last)): answers for name, answers in self.estimated.items()}

    @cached_property
    def suppressed(self) -> Mapping[Window, Suppression]:
        """The windows of which nothing is published, with the reason.

        Counts without noise are released or not before windows are made of them. With noise, what follows is for
        readers, who could do nothing with so small numbers.
        """
        windows = dict.fromkeys([*self.kinds, *self.triangle])
        if self.history.agreed is None:
            reasons = {window: self.history.suppression(window) for window in windows}
            return {window: reason for window, reason in reasons.items() if reason is not None}
        return {window: "minimum" for window in windows if max(self.history.unique(window), 0) < self.survey.minimum}

    @cached_property
    def suppressed_answers(self) -> Mapping[str, Mapping[Window, Suppression]]:
        """The same by attribute: with noise, one may have too few answers."""
        names = [question.name for question in self.history.scheme.questions]
        if self.history.agreed is None or not self.survey.minimum:
            return dict.fromkeys(names, self.suppressed)

        def few(name: str) -> dict[Window, Suppression]:
            return {w: "minimum" for w in self.kinds if self.history.answers(name, w) < self.survey.minimum}

        return {name: {**few(name), **self.suppressed} for name in names}

    @cached_property
    def smoothed(self) -> Mapping[str, Estimates]:
        """The shares in the last period by attribute, smoothed with earlier periods where these have answers."""
        return smoothed_shares(self.history, self.suppressed_answers)


def standard_windows(survey: Survey, periods: range) -> dict[Window, Kind]:
    """Every period, whole hours, days and weeks, and the days since the beginning: each with its kind."""
    kinds: dict[Window, Kind] = {Window(t, t): "period" for t in periods}
    for unit in UNITS:
        for window in calendar_windows(survey, periods, unit):
            kinds.setdefault(window, unit)
    if periods.start == 0:  # the first period that is still known moves along; only period 0 is a fixed beginning
        for window in cumulative_windows(calendar_windows(survey, periods, "day"), survey.horizon):
            kinds.setdefault(window, "cumulative")
    return kinds


def triangle_windows(survey: Survey, periods: range) -> list[Window]:
    """Every run of the last days up to the horizon; of periods, where the horizon is shorter than two whole days.

    Whether it is days or periods depends on the survey alone, so that the triangles of successive reports fit together.
    """
    by_day = not DAY % survey.period and 2 * DAY // survey.period <= survey.horizon
    steps = (calendar_windows(survey, periods, "day") if by_day else [Window(t, t) for t in periods])[
        -LONGEST_TRIANGLE:
    ]
    runs = [Window(begin.first, end.last) for place, begin in enumerate(steps) for end in steps[place:]]
    return [run for run in runs if run.length <= survey.horizon]
