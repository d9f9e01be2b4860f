"""The averaging attack on places, in closed form and carried out (docs/audit.md, section 7).

Far from the border of the grid, displacements are symmetric and independent, so the mean of t reports is off by

    root mean square  sqrt(memo + fresh / t)

cell sides, where `memo` and `fresh` are the mean squares of what the rounds move by. Inside an area of another shape
than its grid (geo-tight) the figure is exact, over all its cells alike: reports are drawn towards the middle.
"""

from collections.abc import Iterator
from math import inf, sqrt

import numpy as np

from lab.attacks.observed import Observed
from lab.attacks.report import Figure, plain
from protocols.mechanisms import PlaceRound, PlanarRound, moved
from protocols.question import Question
from protocols.scheme import Scheme

INSIDE = 4.0  # root mean squares from the border: nearer, reports are moved inwards and the closed form does not hold


def averaged(question: Question, t: float, memoised: bool) -> float:
    """The root mean square distance, in metres, of the mean of t linked reports of one place.

    >>> from protocols.scheme import Scheme
    >>> from protocols.survey_text import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, attributes: [
    ...  {name: place, geo: {level: 1.6015, radius: 200m},
    ...   grid: {at: [47, 6], cell: 50m, columns: 150, rows: 150}}]}'''))
    >>> [round(averaged(scheme.questions[0], t, memoised=False)) for t in (1, 30, 365)]
    [446, 81, 23]
    """
    grid, first, second = question.attribute.grid, question.mechanism.first, question.mechanism.second
    assert grid is not None and isinstance(first, PlaceRound) and (second is None or isinstance(second, PlaceRound))
    if isinstance(first, PlanarRound):  # displacements have no direction, far from the border
        square = _mean_square(first) / (1 if memoised else t)
        return grid.cell * sqrt(square + (_mean_square(second) / t if second is not None else 0.0))
    places = first.area.positions.astype(np.float64)
    memo = first.matrix if memoised else np.eye(first.k)
    fresh = first.matrix if not memoised else np.eye(first.k) if second is None else second.matrix
    centres = fresh @ places
    scatter = fresh @ (places**2).sum(axis=1) - (centres**2).sum(axis=1)
    off = ((places[:, None] - centres) ** 2).sum(axis=2)  # no number of reports averages it away
    return grid.cell * sqrt((memo * (off + scatter / t)).sum(axis=1).mean())


def _mean_square(noise: PlaceRound) -> float:
    far, chances = moved(noise)
    return float(np.square(far) @ chances)


def blind(question: Question) -> float:
    """The same of somebody who sees nothing and names the middle of all cells, if places are spread evenly."""
    grid = question.attribute.grid
    assert grid is not None
    places = grid.area.positions
    return float(grid.cell * np.sqrt(places.var(axis=0).sum()))


def places(scheme: Scheme) -> Iterator[Figure]:
    """The averaging attack: the smaller the distance, the better for the attacker."""
    for question in (question for question in scheme.questions if question.attribute.placed):
        for t in (1, 30, 365, inf):
            best, luck = averaged(question, t, scheme.survey.longitudinal), blind(question)
            knows, facts = "averages linked reports of one place", {"exact": False, "limited": False}
            yield plain("place", question.name, knows, t, best, luck=luck, histogram=None, **facts)


def place_figures(observed: Observed) -> Iterator[Figure]:
    """The averaging attack on places: how far the mean of a device's reports is from its place.

    Of each attribute of places: after one report, and after as many as there are.
    """
    memoised = observed.scheme.survey.longitudinal
    for question in observed.scheme.questions:
        for periods in map(range, sorted({1, observed.periods}) if question.attribute.placed else ()):
            grid = question.attribute.grid
            assert grid is not None
            answered = observed.answered[periods.start : periods.stop].all(axis=0) & observed.answering(question.name)
            rows = np.flatnonzero(answered & observed.kept(question.name, periods))
            positions = grid.area.positions
            true = positions[observed.values[question.name][0][rows]]
            if isinstance(question.mechanism.first, PlanarRound):
                most = np.array([grid.rows, grid.columns]) - 1
                margin = min(INSIDE * averaged(question, 1, memoised) / grid.cell, most.min() / 2)
                inside = ((true >= margin) & (true <= most - margin)).all(axis=1)
                rows, true = rows[inside], true[inside]
            if not len(rows):
                continue
            cells = observed.answers[question.name][periods.start : periods.stop, rows]
            off = np.hypot(*(positions[cells].mean(axis=0) - true).T) * grid.cell
            measured = float(np.sqrt((off**2).mean()))
            spread = float((off**2).std()) / np.sqrt(len(off)) / (2 * max(measured, 1e-9))
            best, knows = averaged(question, len(periods), memoised), "averages linked reports, away from the border"
            ends = {"low": measured - 1.96 * spread, "high": measured + 1.96 * spread, "trials": len(rows)}
            facts = {"luck": blind(question), "histogram": None, "exact": False, "limited": False}
            yield plain("place", question.name, knows, len(periods), best, measured=measured, **ends, **facts)
