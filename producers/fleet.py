"""A fleet: many devices of one keyring, living through the periods of a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memo_store.survey_memos import SurveyMemos
from producers.memo_cache import MemoCache
from producers.reporting import ROWS_PER_FRAME, Progress, Reported, Reporter, no_progress
from producers.scenarios.base import Scenario
from producers.sinks.base import Sink
from producers.source_clock import SourceClock
from producers.stopping import Stop, never
from protocols.errors import ScenarioError, Stopped
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Survey

CACHE_BYTES = 256 << 20


class Fleet:
    """Reports what a scenario says of its devices, period by period, and tells the time.

    After a crash or Ctrl-C, run the same periods again, or resume with the one that was named: each device is
    reported exactly once per period, as if nothing had happened. Memos are cached up to `cache_bytes` (0: every one
    comes from the store, every time).
    """

    def __init__(
        self,
        scheme: Scheme,
        keyring: Keyring,
        memos: SurveyMemos,
        sink: Sink,
        scenario: Scenario,
        clock_key: bytes | None = None,
        cache_bytes: int = CACHE_BYTES,
        rows_per_frame: int = ROWS_PER_FRAME,
    ) -> None:
        check_scenario(scheme.survey, scenario)
        self.scenario = scenario
        self._clock = SourceClock(scheme.survey, clock_key, sink)
        respondent = Respondent(scheme, keyring)
        cache = MemoCache(memos, scheme, scenario.devices, cache_bytes)
        self._reporter = Reporter(respondent, cache, memos.fleet_presence(scenario.devices), sink, rows_per_frame)

    def run(
        self, periods: Iterable[int] | None = None, progress: Progress = no_progress, stop: Stop = never
    ) -> list[Reported]:
        """Live through `periods` (ascending; all of the scenario's when left out); what was reported in each."""
        return list(self.walk(periods, progress, stop))

    def walk(
        self, periods: Iterable[int] | None = None, progress: Progress = no_progress, stop: Stop = never
    ) -> Iterator[Reported]:
        """The same, one period at a time: each is confirmed, and those that are over are closed, when it is given."""
        for period in range(self.scenario.periods) if periods is None else periods:
            if stop():
                raise Stopped(f"stopped before period {period}", f"resume with period {period}")
            self._clock.reach(period)
            reported = self._reporter.report(self.scenario.presences(period), progress, stop)
            ended = period == self.scenario.periods - 1  # nothing follows, so grace may pass at once
            self._clock.reach(period + 1 + (self._clock.lag if ended else 0))
            yield reported


def check_scenario(survey: Survey, scenario: Scenario) -> None:
    """Refuse a scenario that tells other attributes or values than the survey asks for."""
    for attribute in survey.attributes:
        where = f"scenario {scenario.name!r} and survey {survey.id!r} do not fit"
        told = scenario.attributes.get(attribute.name)
        if told is None:
            raise ScenarioError(
                f"{where}: the survey asks for {attribute.name!r}",
                f"the scenario tells {', '.join(scenario.attributes)}",
            )
        if told != attribute.values:
            strange = [value for value in told if value not in attribute.values]
            missing = [value for value in attribute.values if value not in told]
            what = (
                f"{strange[0]!r} is told and not offered"
                if strange
                else f"{missing[0]!r} is offered and never told"
                if missing
                else "their order differs"
            )
            raise ScenarioError(
                f"{where}: of attribute {attribute.name!r}, {what}",
                f"give the survey exactly these values: [{', '.join(told)}]",
            )
