"""The audit of devices in JavaScript: the same attacks, with the same figures, as on devices in Python."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
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
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from protocols.wire import Frame, decode_report
from tests.helpers.node import LIBRARY, node

DEVICES, PERIODS = 200, 2
ALPHA = 0.0001
ALONE = np.zeros(1, dtype=np.uint64)  # a device of one person is number 0 of its own secret


class ManySecrets:
    """What the audit knows of devices that have a secret each: their tokens, traits and sampled attributes."""

    def __init__(self, scheme: Scheme, secrets: list[bytes]) -> None:
        self.scheme = scheme
        self._each = [Respondent(scheme, Keyring(secret)) for secret in secrets]

    def tokens(self, _: Any, period: int) -> Any:
        return np.concatenate([one.tokens(ALONE, period) for one in self._each])

    def sampled(self, _: Any) -> Any:
        return np.concatenate([one.sampled(ALONE) for one in self._each])

    def traits(self, question: Question, _: Any) -> Any:
        traits = [one.traits(question, ALONE) for one in self._each]
        return None if traits[0] is None else np.concatenate([np.asarray(trait) for trait in traits])


@dataclass
class ThroughNode:
    """Reports made by clients/javascript in Node.js, as single JSON reports."""

    keyring: Keyring
    seed: int = 0
    name = "the JavaScript library"
    runs: int = 0

    def observe(self, survey: Survey, people: Scenario, step: Step) -> Observed:
        self.runs += 1
        devices = people.devices
        scheme = own_scheme(survey, f"audit.{self.runs}")
        secrets = [sha256(f"{self.seed}/{self.runs}/{device}".encode()).digest() for device in range(devices)]
        witness = Witness(ManySecrets(scheme, secrets), devices, people.periods)  # type: ignore[arg-type]
        values: list[list[dict[str, str] | None]] = []
        for period in range(people.periods):
            truth = people.presences(period)
            witness.knows(period, truth.devices, truth.values)
            shown: list[dict[str, str] | None] = [None] * devices
            for row, device in enumerate(truth.devices.tolist()):
                shown[device] = {a.name: a.values[truth.values[a.name][row]] for a in scheme.survey.attributes}
            values.append(shown)
        asked = {
            "terms": scheme.terms.decode(),
            "start": int(scheme.survey.start.timestamp() * 1000),
            "period": int(scheme.survey.period.total_seconds()),
            "secrets": [secret.hex() for secret in secrets],
            "values": values,
        }
        run = node(LIBRARY / "tests" / "fleet.js", stdin=json.dumps(asked))
        assert run.returncode == 0, run.stderr
        for line in run.stdout.encode().splitlines():
            frame = decode_report(line, {scheme.survey.id: scheme}.get)
            assert isinstance(frame, Frame), frame
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
