"""Replaying at a multiple of the speed of the recorded events."""

from __future__ import annotations

import time
from collections.abc import Callable

from producers.stopping import Stop

LONGEST_NAP = 0.2


class Pace:
    """Event time runs `speed` times as fast as real time; without a speed, there are no waits."""

    def __init__(
        self,
        speed: float | None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._speed = speed
        self._now = now
        self._sleep = sleep
        self._origin: tuple[float, float] | None = None

    def wait_for(self, moment: float, stop: Stop) -> None:
        """Wait until event time is at `moment` (in seconds), or the user asks to stop. The first call never waits."""
        if self._speed is None:
            return
        if self._origin is None:
            self._origin = (moment, self._now())
        began, at = self._origin
        while not stop() and (left := at + (moment - began) / self._speed - self._now()) > 0:
            self._sleep(min(left, LONGEST_NAP))
