"""Gaps of returning visitors as they are published, where counts have noise."""

from __future__ import annotations

from collections.abc import Sequence


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
