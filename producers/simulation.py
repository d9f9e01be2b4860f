"""A simulation: many devices of one keyring report what a scenario gives, period by period."""

from collections.abc import Iterable

from memo_store.survey_memos import SurveyMemos
from producers.reporting import ProgressCallback, Reported, Reporter
from producers.scenarios.base import Scenario
from producers.sinks import Sink, SourceClock
from producers.stopping import Stop, never
from protocols.errors import ScenarioError, Stopped
from protocols.survey import Survey


class Simulation:
    """Reports a scenario's devices, period by period, and sends the clock records.

    After a crash or Ctrl-C, run the same periods again, or resume with the period that the error names: each device is
    still reported exactly once per period.
    """

    def __init__(self, memos: SurveyMemos, sink: Sink, scenario: Scenario, clock_key: bytes) -> None:
        survey = memos.respondent.scheme.survey
        check_scenario(survey, scenario)
        self.scenario = scenario
        self._clock = SourceClock(survey, clock_key, sink)
        self._reporter = Reporter(memos, memos.fleet_presence(scenario.devices), sink)

    def run(
        self, periods: Iterable[int] | None = None, progress: ProgressCallback = lambda _: None, stop: Stop = never
    ) -> list[Reported]:
        """Report `periods` (ascending; by default all of the scenario's). Returns what was reported in each."""
        reported = []
        for period in range(self.scenario.periods) if periods is None else periods:
            if stop():
                raise Stopped(f"stopped before period {period}", f"resume with period {period}")
            self._clock.advance(period)
            reported.append(self._reporter.report(self.scenario.presences(period), progress, stop))
            if period == self.scenario.periods - 1:
                self._clock.finish(period)
            else:
                self._clock.advance(period + 1)
        return reported


def check_scenario(survey: Survey, scenario: Scenario) -> None:
    """Refuse a scenario that lacks an attribute of the survey, or has other values for one."""
    where = f"scenario {scenario.name!r} does not fit survey {survey.id!r}"
    for attribute in survey.attributes:
        values = scenario.attributes.get(attribute.name)
        if values is None:
            raise ScenarioError(
                f"{where}: the survey asks for attribute {attribute.name!r}",
                f"the scenario has {', '.join(scenario.attributes)}",
            )
        if values != attribute.values:
            raise ScenarioError(
                f"{where}: attribute {attribute.name!r}: {_difference(values, attribute.values)}",
                f"give the survey exactly these values: [{', '.join(values)}]",
            )


def _difference(in_scenario: tuple[str, ...], in_survey: tuple[str, ...]) -> str:
    """How two different lists of values differ."""
    for value in in_scenario:
        if value not in in_survey:
            return f"the scenario has the value {value!r}, which the survey does not list"
    for value in in_survey:
        if value not in in_scenario:
            return f"the survey lists the value {value!r}, which the scenario does not have"
    return "the values are in another order"
