"""Noticing that nothing gets on, although the broker answers.

Partitions are assigned and state is recovered by code that is not ours, over connections that break at any moment. If
it is ever stuck, only a new start helps, and that is as safe as any other moment to end: see `crash`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from protocols.errors import ServerError
from stream_app.faust_app.crash import fatal

LOOK_SECONDS = 5.0
"""How often to look; also how long a broker may take to answer before it counts as away."""
MOST_LOOKS = 30
"""How often nothing may have changed. A group waits up to a minute for members that do not come back."""


class Standstill:
    """Counts how often in a row the same was seen. Looks are counted, not seconds: a paused process sees nothing."""

    def __init__(self, most_looks: int = MOST_LOOKS) -> None:
        self._most_looks = most_looks
        self._looks = 0
        self._seen: object = None

    def look(self, progress: object) -> None:
        """`progress` differs whenever there is any; it is None where none is due. Too often the same is an error."""
        self._looks = self._looks + 1 if progress is not None and progress == self._seen else 0
        self._seen = progress
        if self._looks >= self._most_looks:
            raise ServerError(
                f"partitions were not assigned or their state not recovered for {self._looks * LOOK_SECONDS:.0f} s, "
                "although the broker answers",
                "start the worker again; if that does not help, look at the broker's log",
            )


async def notice_standstill(progress: Callable[[], object], broker_answers: Callable[[], Awaitable[object]]) -> None:
    """End this process when it stands still. While the broker is away, waiting is right."""
    standstill = Standstill()
    with fatal("waiting for partitions and their state"):
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await asyncio.wait_for(broker_answers(), LOOK_SECONDS)
            except TimeoutError:
                standstill.look(None)
            else:
                standstill.look(progress())
