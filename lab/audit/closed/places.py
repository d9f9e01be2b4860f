"""The averaging attack on places, in closed form (docs/audit.md): how far the mean of linked reports is from the place.

Far from the border of the grid, displacements are symmetric and independent, so the mean of t reports is off by

    root mean square  sqrt(memo + fresh / t)

cell sides, where `memo` and `fresh` are the mean squares of what the rounds move by. Without a memo it goes to 0; with
one it never falls below one draw of the memo. Inside an area of another shape than its grid (geo-tight) the figure is
exact, over all its cells alike: reports are drawn towards the middle.
"""

from math import sqrt

import numpy as np

from protocols.mechanisms import PlaceRound, PlanarRound, moved
from protocols.question import Question


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
