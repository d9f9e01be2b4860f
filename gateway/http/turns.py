"""Turns of the event loop, which connections share: who asks more than others waits in a line.

A loop handles what has come on one connection before it looks at the next one. uvloop reads up to
32 times from a connection before that. A new connection waits for two or three turns until its
first request is read. So what is done in a turn decides how long everybody else waits.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Protocol

AT_ONCE = 32
"""Requests that are answered at once in a turn, of all connections together. Further ones wait in
the line. Without it, a thousand connections that each ask again and again would be answered before
a new one in each of its turns."""
COST_OF_AN_ANSWER = 1
COST_OF_A_TURN = 16
"""What may be done for the line in a turn. Before there was a line, one connection with pipelined
GETs of 34 bytes kept an open one waiting for 1,928 answers and a new one for 4,729; 20 connections
did for 20 times as many."""
COST_OF_A_READ = 4
"""Of 2 KiB with 60 heads, or of 10 KiB with 900 chunks, which take a millisecond to parse."""
COST_OF_A_HANDSHAKE = 4
"""A key of RSA takes a millisecond to sign with. 200 clients that say hello at once kept asyncio's
loop from everything else for 111 ms of CPU."""
TURN_SECONDS = 0.002
"""After so long a turn ends, whatever was done: `/metrics` takes 3 ms of CPU. Seven CPU seconds went
by where pipelined requests for `/metrics` were answered in one turn."""


class Waiting(Protocol):
    """What waits in the line. The same one waits once, however often it is added."""

    def take_turn(self) -> int:
        """Do the next step, and say what it cost. Whoever has more to do waits again."""


class _Turn:
    """What a coroutine waits with."""

    def __init__(self, cost: int) -> None:
        self._cost = cost
        self.come = asyncio.get_running_loop().create_future()

    def take_turn(self) -> int:
        if self.come.done():  # cancelled
            return 0
        self.come.set_result(None)
        return self._cost


class Turns:
    """The line, and what may still be answered at once in this turn."""

    def __init__(self) -> None:
        self._line: dict[Waiting, None] = {}  # the longest first
        self._left = AT_ONCE
        self._seconds_left = TURN_SECONDS
        self._begun = False

    def has_room(self) -> bool:
        """Whether this turn has room for one more answer."""
        return self._left > 0 and self._seconds_left > 0

    def at_once(self, answer: Callable[[], bool]) -> None:
        """Answer in this turn. `answer` says whether that is done, or will be later.

        What others do in the turn, such as parsing, is not counted: who asks little would wait.
        Nor is a report that waits for the log. 256 devices that are confirmed together send the
        next together: when they waited, fewer were gathered at once, and each took 1.2 times the
        CPU.
        """
        if not self._begun:
            self._begin()
        began = perf_counter()
        if answer():
            self._seconds_left -= perf_counter() - began
            self._left -= 1

    def wait(self, waiting: Waiting) -> None:
        """Let it take a turn after those that wait already."""
        self._line[waiting] = None
        if not self._begun:
            self._begin()

    def leave(self, waiting: Waiting) -> None:
        self._line.pop(waiting, None)

    async def turn(self, cost: int) -> None:
        """Wait in the line for something that costs so much."""
        turn = _Turn(cost)
        self.wait(turn)
        await turn.come

    def _begin(self) -> None:
        """Begin a turn. It ends when the loop has looked at all connections once."""
        self._begun = True
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        """Serve the line. The next turn begins now if somebody waits, or else with a request."""
        self._begun = False
        self._left = AT_ONCE
        self._seconds_left = TURN_SECONDS
        until = perf_counter() + TURN_SECONDS
        left = COST_OF_A_TURN
        try:
            while self._line and left > 0:
                first = next(iter(self._line))
                del self._line[first]
                left -= first.take_turn()
                if perf_counter() > until:
                    break
        finally:  # an error in one step must not keep all others waiting
            if self._line and not self._begun:
                self._begin()
