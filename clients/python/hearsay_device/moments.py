"""When a report is sent: at a moment of its own, which neither its value nor other reports set."""

from __future__ import annotations

HEAD = 10.0
"""Seconds from the call to the earliest moment. Settling takes less, so the moment does not tell how
long it took: with less, the work for a large set would show."""


def share(drawn: bytes) -> float:
    """A uniform number of 0 to 1."""
    return int.from_bytes(drawn[:8], "little") / 2**64


def first_moment(called: float, latest: float, spread: float | None, drawn: float) -> float:
    """When a new report is due: `called` is when the app asked for it, before any work was done."""
    left = _left(called, latest, spread)
    head = HEAD if left > HEAD else 0.0
    return called + head + drawn * (left - head)


def next_moment(now: float, latest: float, spread: float | None, drawn: float) -> float:
    """When a report is due again that was not delivered."""
    return now + drawn * _left(now, latest, spread)


def _left(now: float, latest: float, spread: float | None) -> float:
    """How many seconds there are to choose from; `spread`: at most so many."""
    left = max(0.0, latest - now)
    return left if spread is None else min(left, spread)
