"""Which periods a device has settled, as ranges: a clock that was ahead can be set back without answering twice."""

from __future__ import annotations

from collections.abc import Iterable

Ranges = list[list[int]]
"""The first and the last period of each range, ascending."""

MOST_RANGES = 100
"""Ranges that are kept. Of a device that reports every second day they go back 200 days; before, periods
that were not settled count as settled, so nothing is answered twice."""


def add(ranges: Ranges, period: int) -> None:
    """Add a period after all others."""
    if ranges and ranges[-1][1] == period - 1:
        ranges[-1][1] = period
    else:
        ranges.append([period, period])
    if len(ranges) > MOST_RANGES:
        oldest = ranges.pop(0)
        ranges[0][0] = oldest[0]


def has(ranges: Ranges, period: int) -> bool:
    return any(first <= period <= last for first, last in ranges)


def until(ranges: Ranges, period: int) -> Ranges:
    """The part up to a period.

    >>> until([[1, 4], [8, 9]], 3)
    [[1, 3]]
    """
    return [[first, min(last, period)] for first, last in ranges if first <= period]


def since(ranges: Ranges, period: int) -> Ranges:
    """The part from a period on.

    >>> since([[1, 4], [8, 9]], 3)
    [[3, 4], [8, 9]]
    """
    return [[max(first, period), last] for first, last in ranges if last >= period]


def without(ranges: Ranges, periods: Iterable[int]) -> Ranges:
    """
    >>> without([[1, 4], [8, 9]], [3, 8])
    [[1, 2], [4, 4], [9, 9]]
    """
    for period in periods:
        before = until(ranges, period - 1)
        behind = since(ranges, period + 1)
        ranges = before + behind
    return ranges
