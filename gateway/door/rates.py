"""How often each credential may send, with a bounded memory. The time is given; a restart forgets everything."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

MOST_KEPT = 100_000


@dataclass(frozen=True)
class Rate:
    """So many requests at once, and from then on so many a second."""

    per_second: float
    burst: int


class RateLimit:
    """A bucket for each credential, which empties with every request and fills with time.

    >>> limit = RateLimit(Rate(per_second=1, burst=2))
    >>> [limit.wait("a", now) for now in (0.0, 0.0, 0.0, 1.0)], limit.wait("b", 0.0)
    ([0.0, 0.0, 1.0, 0.0], 0.0)
    """

    def __init__(self, rate: Rate, most_kept: int = MOST_KEPT) -> None:
        self._rate = rate
        self._most_kept = most_kept
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, as of a time

    def wait(self, credential: str, now: float) -> float:
        """Take one request: 0 if it may be made now, or after how many seconds it may."""
        left, at = self._left.pop(credential, (float(self._rate.burst), now))
        left = min(float(self._rate.burst), left + max(0.0, now - at) * self._rate.per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate.per_second
        self._left[credential] = left - (wait == 0), now
        if len(self._left) > self._most_kept:
            self._left.popitem(last=False)  # the one that was silent for the longest time, whose bucket is fullest
        return wait

    def forget(self, credential: str) -> None:
        """Give back everything that was taken."""
        self._left.pop(credential, None)

    def __len__(self) -> int:
        return len(self._left)
