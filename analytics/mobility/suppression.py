"""Suppression: nothing is published about few people, nor anything from which numbers of few could be computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from analytics.mobility.model import Suppression
from analytics.windows.calendar import Window


def suppressions(visitors: Mapping[Window, int], minimum: int) -> dict[Window, Suppression]:
    """The windows to suppress, with the reason.

    A window is suppressed if it has fewer than `minimum` visitors, or if it has a few more than a published window
    inside it: the difference would be a number of few people. Short windows are decided first and take precedence.

    >>> few, day = Window(0, 0), Window(1, 1)
    >>> suppressions({few: 3, day: 100, Window(0, 1): 103}, minimum=10)
    {Window(first=0, last=0): 'minimum', Window(first=0, last=1): 'difference'}
    """
    suppressed: dict[Window, Suppression] = {}
    if minimum <= 0:
        return suppressed
    firsts, lasts, counts = np.zeros((3, len(visitors)), dtype=np.int64)  # of the published windows
    published = 0
    for window in sorted(visitors, key=lambda w: (w.length, w.first)):
        more = visitors[window] - counts[:published]
        inside = (firsts[:published] >= window.first) & (lasts[:published] <= window.last)
        if visitors[window] < minimum:
            suppressed[window] = "minimum"
        elif (inside & (more > 0) & (more < minimum)).any():
            suppressed[window] = "difference"
        else:
            firsts[published], lasts[published], counts[published] = window.first, window.last, visitors[window]
            published += 1
    return suppressed


def merged_gaps(counts: Sequence[int], minimum: int) -> list[tuple[int, int]]:
    """Ranges of gaps (shortest, longest) that cover gaps 1, 2, ..., each with no visitors or at least `minimum`.

    `counts[gap - 1]` are visitors. A rare gap is merged with longer ones; what is left over joins the last range.

    >>> merged_gaps([40, 3, 9, 0, 25, 2], minimum=10)
    [(1, 1), (2, 3), (4, 4), (5, 6)]
    >>> merged_gaps([3, 4], minimum=10)
    []
    """
    ranges: list[tuple[int, int]] = []
    begin, gathered = 1, 0
    for gap, count in enumerate(counts, start=1):
        gathered += count
        if gathered == 0 or gathered >= minimum:
            ranges.append((begin, gap))
            begin, gathered = gap + 1, 0
    if gathered:
        while ranges and sum(counts[ranges[-1][0] - 1 : ranges[-1][1]]) == 0:
            ranges.pop()
        if ranges:
            ranges[-1] = (ranges[-1][0], len(counts))
    return ranges
