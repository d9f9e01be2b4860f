"""The audit of devices in JavaScript: the same attacks, with the same figures, as on devices in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hearsay.terminal.console import Step, no_step
from lab.attacks.observed import Observed, Witness
from lab.attacks.reidentify import own_scheme
from lab.auditing.auditing import Auditing
from lab.auditing.devices import STEADY, named
from producers.scenarios import Scenario
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from protocols.wire import Frame, decode_report
from tests.clients.libraries import driver
from tests.clients.vectors import ANY

DEVICES, PERIODS = 200, 2
ALPHA = 0.0001


class Known:
    """What the audit knows of devices: their tokens, traits and sampled attributes."""

    def __init__(self, scheme: Scheme, drawn: list[dict[str, Any]], tokens: Any) -> None:
        self.scheme, self._drawn, self._tokens = scheme, drawn, tokens

    def tokens(self, _: Any, period: int) -> Any:
        return self._tokens[period]

    def sampled(self, _: Any) -> Any:
        return np.array([each["sampled"] for each in self._drawn])

    def traits(self, question: Question, _: Any) -> Any:
        traits = [each["traits"].get(question.name) for each in self._drawn]
        return None if None in traits else np.array(traits)


@dataclass
class ThroughNode:
    """Reports made by clients/javascript in Node.js, as single JSON reports."""

    keyring: Keyring
    seed: int = 0
    name = "the JavaScript library"
    runs: int = 0

    def observe(self, survey: Survey, people: Scenario, step: Step) -> Observed:
        self.runs += 1
        scheme = own_scheme(survey, f"audit.{self.runs}")
        node, id_, days = driver(), scheme.survey.id, range(people.periods)
        names = [node.name() for _ in range(people.devices)]
        for device, name in enumerate(names):
            options = {"limits": ANY, "entropy": f"{self.seed}/{self.runs}/{device}"}
            node.ask([name, "open", options], [name, "at", scheme.survey.bounds(0)[0].timestamp()])
            (joined,) = node.ask([name, "join", scheme.terms.decode(), {"trustFirstUse": True}])
            assert joined["is"] == id_
        drawn = [node.ask([name, "drawn", scheme.terms.decode()])[0]["is"] for name in names]
        tokens, frames = np.zeros((people.periods, people.devices), dtype=np.uint64), []
        truths = [people.presences(period) for period in days]
        for period, truth in zip(days, truths, strict=True):
            for row, device in enumerate(truth.devices.tolist()):
                values = {a.name: a.values[truth.values[a.name][row]] for a in scheme.survey.attributes}
                at = [names[device], "at", scheme.survey.bounds(period)[0].timestamp()]
                report = node.ask(at, [names[device], "settle", id_, values])[1]["is"]["report"]
                frame = decode_report(report.encode(), {id_: scheme}.get)
                assert isinstance(frame, Frame), frame
                tokens[period, device] = frame.tokens[0]
                frames.append(frame)
        witness = Witness(Known(scheme, drawn, tokens), people.devices, people.periods)  # type: ignore[arg-type]
        for period, truth in zip(days, truths, strict=True):
            witness.knows(period, truth.devices, truth.values)
        for frame in frames:
            witness.take(frame)
        return witness.observed


def survey_of(solution: str, mechanism: str) -> Survey:
    return parse_survey(
        f"{{id: colours, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, solution: {solution}, "
        f"attributes: [{{name: few, values: [a, b, c]}}, {{name: many, range: {{last: 9}}, mechanism: {mechanism}}}]}}"
    )


@pytest.mark.long(part="clients")
@pytest.mark.parametrize(("solution", "mechanism"), [("smp", "l-osue"), ("spl", "loloha"), ("rs+fd", "grr")])
def test_devices_in_javascript_keep_every_promise_that_an_audit_measures(solution: str, mechanism: str) -> None:
    survey = survey_of(solution, mechanism)
    auditing = Auditing(survey, None, ("guess", "which", "link", "epsilon"), "best", "even", ALPHA, 3, "")
    people = named(survey, STEADY, DEVICES, PERIODS, 3)
    report = auditing.measured(people, ThroughNode(Keyring(bytes(32)), 3), no_step)
    assert report.path == "the JavaScript library" and not report.defects
    measured = [figure for figure in report.figures if figure.measured is not None]
    assert {figure.attack for figure in measured} >= {"guess", "epsilon"}
    exact = [f for f in measured if f.attack == "guess" and f.exact and f.best is not None and f.low is not None]
    assert exact and all(f.low <= f.best <= f.high for f in exact if f.high is not None and f.reached)
    assert np.isfinite([figure.measured for figure in measured]).all()
