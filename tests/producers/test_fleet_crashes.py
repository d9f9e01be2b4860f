"""A fleet that dies between any two of its steps loses nobody and doubles nobody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from memo_store.survey_memos import SurveyMemos
from producers.simulation import Simulation
from protocols.respondent import Respondent
from tests.helpers.sinks import KeepingSink, rows_by_token
from tests.producers.populations import CLOCK_KEY, KEYRING, Alternating, counted, scheme

OpenMemos = Callable[[Respondent], SurveyMemos]
SURVEY = scheme("solution: spl,")
WORLD = Alternating(120, 3)
STEPS = {"status", "lookup", "send", "flush", "delivered"}


class Crash(Exception):
    """The process is gone."""


class Steps:
    """Counts the steps of a fleet, and dies before or after one of them."""

    def __init__(self, fatal: int, before: bool) -> None:
        self.fatal, self.before, self.taken = fatal, before, 0

    def around(self, part: Any) -> Any:
        return _Watched(part, self)


class _Watched:
    def __init__(self, part: Any, steps: Steps) -> None:
        self._part, self._steps = part, steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if name == "fleet_presence":
            return lambda devices: self._steps.around(found(devices))
        if name not in STEPS:
            return found

        def step(*args: Any) -> Any:
            self._steps.taken += 1
            fatal = self._steps.taken == self._steps.fatal
            if fatal and self._steps.before:
                raise Crash
            result = found(*args)
            if fatal:
                raise Crash
            return result

        return step


def run(open_memos: OpenMemos, sink: KeepingSink, steps: Steps) -> None:
    memos = steps.around(open_memos(Respondent(SURVEY, KEYRING)))
    Simulation(memos, steps.around(sink), WORLD, CLOCK_KEY).run()


def test_a_crash_at_any_step_is_repaired_by_running_again(
    open_memos: OpenMemos, redis_url: str, tmp_path: Path
) -> None:
    """Failure would look like: a token missing, one token with two reports, or a count that is not the number there."""
    whole, all_steps = KeepingSink(), Steps(0, True)
    run(open_memos, whole, all_steps)
    assert all_steps.taken > 30
    expected = [len(WORLD.presences(period).devices) for period in range(WORLD.periods)]
    for fatal in range(1, all_steps.taken + 1):
        for before in (True, False) if fatal % 3 == 0 else (fatal % 2 == 0,):  # both where there is time for it
            with redis.Redis.from_url(redis_url) as client:
                client.flushall()
            sink = KeepingSink()
            with pytest.raises(Crash):
                run(open_memos, sink, Steps(fatal, before))
            if before:  # and what was on its way is gone, too
                del sink.records[sink.confirmed :]
            run(open_memos, sink, Steps(0, True))
            assert rows_by_token(sink.frames(SURVEY)) == rows_by_token(whole.frames(SURVEY))
    assert counted(sink, SURVEY, tmp_path) == expected
