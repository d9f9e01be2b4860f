"""The shares of a period, smoothed with earlier periods: of all attributes, those together that are asked alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Mapping
from math import sqrt

import numpy as np

from analytics.estimation.estimates import Estimates
from analytics.estimation.noised import CellNoise
from analytics.estimation.smoothing import BLOCK, smooth
from analytics.mobility.count_history import CountHistory
from analytics.windows.calendar import Window
from protocols.arrays import Whole
from protocols.question import Question

FEWEST_ERRORS = 4  # by which a number of answers with noise must exceed 0 for its period to be smoothed
MOST_SMOOTHED = 32  # periods: with more, intervals get hardly narrower and finals slower

Asked = tuple[Question, Whole, Whole]  # with its counts `[period, value]` and its answers `[period]`


def smoothed_shares(history: CountHistory, suppressed: Mapping[str, Container[Window]]) -> dict[str, Estimates]:
    """The shares in the last period, by attribute; of those that have answers in it, and in an earlier one.

    Suppressed periods are left out, and periods whose number of answers is not known well enough for an estimate.
    """
    periods = history.periods[-MOST_SMOOTHED:]
    visitors = float(history.visitors(Window(periods[-1], periods[-1])).value)
    alike: defaultdict[tuple[Hashable, CellNoise | None, Hashable], list[Asked]] = defaultdict(list)
    for question in history.scheme.questions:
        if question.attribute.placed:  # shares of places are not sums over reports, which could be smoothed
            continue
        counts, n = history.by_period(question.name, periods)
        noise = CellNoise.of(history.scheme, question.name)
        if noise is not None:
            n[n < FEWEST_ERRORS * sqrt(noise.reports)] = 0
        n[[Window(t, t) in suppressed[question.name] for t in periods]] = 0
        if np.count_nonzero(n) >= 2 and n[-1]:
            asked = question.name if question.faked else question.mechanism
            alike[asked, noise, tuple((n > 0).tolist())].append((question, counts, n))
    found: dict[str, Estimates] = {}
    for (_, noise, _), group in alike.items():
        at_once = max(1, BLOCK // group[0][0].k)
        for first in range(0, len(group), at_once):
            found |= _together(group[first : first + at_once], visitors, noise, history.scheme.survey.longitudinal)
    return found


def _together(group: list[Asked], visitors: float, noise: CellNoise | None, longitudinal: bool) -> dict[str, Estimates]:
    questions, counts, n = zip(*group, strict=True)
    channel, memo_channel = questions[0].channel, questions[0].memo_channel if longitudinal else None
    shares = smooth(
        np.stack(counts, axis=1), np.stack(n, axis=1), channel, memo_channel, population=visitors, noise=noise
    )
    return {question.name: shares[place] for place, question in enumerate(questions)}
