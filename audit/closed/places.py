"""The averaging attack on places, in closed form (docs/audit.md): how far the mean of linked reports is from the place.

Far from the border of the grid, displacements are symmetric and independent, so the mean of t reports is off by

    root mean square  sqrt(memo + fresh / t)

cell sides, where `memo` and `fresh` are the mean squares of what the rounds move by. Without a memo it goes to 0; with
one it never falls below one draw of the memo.
"""

from __future__ import annotations

from math import hypot, inf, sqrt

import numpy as np

from protocols.mechanisms import PlanarRound, moved_by
from protocols.question import Question


def averaged(question: Question, t: float, memoised: bool) -> float:
    """The root mean square distance, in metres, of the mean of t linked reports of one place.

    >>> from protocols.scheme import Scheme
    >>> from protocols.survey_text import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, attributes: [
    ...  {name: place, geo: {level: 1.0986, radius: 200m},
    ...   grid: {at: [47, 6], cell: 50m, columns: 150, rows: 150}}]}'''))
    >>> [round(averaged(scheme.questions[0], t, memoised=False)) for t in (1, 30, 365)]
    [446, 81, 23]
    """
    first, second = question.mechanism.first, question.mechanism.second
    grid = question.attribute.grid
    assert isinstance(first, PlanarRound) and (second is None or isinstance(second, PlanarRound)) and grid is not None
    if not memoised:
        return grid.cell * sqrt(_mean_square(first) / t) if t != inf else 0.0
    return grid.cell * sqrt(_mean_square(first) + (0.0 if second is None else _mean_square(second) / t))


def blind(question: Question) -> float:
    """The same of somebody who sees nothing and names the middle of the grid, if places are spread evenly."""
    grid = question.attribute.grid
    assert grid is not None
    return grid.cell * hypot(*(sqrt((size**2 - 1) / 12) for size in (grid.columns, grid.rows)))


def _mean_square(noise: PlanarRound) -> float:
    far, chances = moved_by(noise.chances)
    return float(np.square(far) @ chances)
