"""What flows between days say about windows of days, and about people who return after long."""

import numpy as np

from producers.people import Flows
from protocols.arrays import Mask, Places, Whole


def arcs(days: int, horizon: int) -> tuple[Places, Places]:
    """From where and to where: arcs that are shorter than a horizon, and those that begin or end a life."""
    start, end = np.triu_indices(days + 2, 1)
    ends = (start == 0) ^ (end == days + 1)
    inner = (start > 0) & (end <= days) & (end - start < horizon)
    return start[ends | inner], end[ends | inner]


def met(start: Whole, end: Whole, windows: Whole) -> Mask:
    """Which arc `[window, arc]` counts in which window: each window is entered by one arc of each of its people."""
    first, last = windows[:, :1], windows[:, 1:]
    return np.asarray((start < first) & (first <= end) & (end <= last))


def unique_people(flows: Whole) -> Whole:
    """The different people of every window, `[s, e]`.

    >>> from producers.people import flows_of
    >>> flows = np.zeros((4, 4), dtype=np.int64)
    >>> flows[0, 1], flows[1, 2], flows[1, 3], flows[0, 2], flows[2, 3] = 5, 2, 3, 4, 6
    >>> unique_people(flows)[1:, 1:].tolist()
    [[5, 9], [0, 6]]
    >>> np.array_equal(flows_of(unique_people(flows)), flows)
    True
    """
    days = len(flows) - 2
    before = np.cumsum(np.cumsum(flows, axis=0), axis=1)[:days, : days + 1]  # row s - 1
    entered = before - np.diagonal(before)[:, None]
    return np.triu(np.vstack([np.zeros((1, days + 1), dtype=flows.dtype), entered]))


def beyond(flows: Whole, horizon: int) -> Whole:
    """By day, how many of its newcomers can be people who had been away for a horizon or longer, at most.

    Whoever can return does, as early as possible: who is away stays available, so nothing is gained by waiting.
    """
    days, waiting = len(flows) - 2, 0
    returning = np.zeros(days + 1, dtype=np.int64)
    for day in range(horizon + 1, days + 1):
        waiting += int(flows[day - horizon, -1])
        returning[day] = min(waiting, int(flows[0, day]))
        waiting -= int(returning[day])
    return returning


def rejoined(flows: Flows, horizon: int, returns: int, rng: np.random.Generator) -> Flows:
    """The flows if so many returned after a horizon or longer: in proportion on all days, anybody who is away."""
    found, most = flows.copy(), beyond(flows, horizon)
    per_day = np.diff(np.cumsum(most) * returns // max(int(most.sum()), 1), prepend=0)
    for day in np.flatnonzero(per_day).tolist():
        away = np.zeros(len(flows), dtype=np.int64)
        away[1 : day - horizon + 1] = found[1 : day - horizon + 1, -1]
        back = rng.multivariate_hypergeometric(away, per_day[day])
        found[:, day] += back
        found[:, -1] -= back
        found[0, day] -= per_day[day]
    return found
