"""The audit of devices in JavaScript: the same attacks, with the same figures, as on devices in Python."""

from __future__ import annotations

import numpy as np
import pytest

from audit.report import AuditReport
from hearsay.auditing.auditing import Auditing
from hearsay.auditing.populations import STEADY, named
from hearsay.terminal.console import no_step
from protocols.randomness import Keyring
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from tests.audit.javascript import ThroughNode

DEVICES, PERIODS = 200, 2
ALPHA = 0.0001


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
    report: AuditReport = auditing.measured(people, ThroughNode(Keyring(bytes(32)), 3), no_step)
    assert report.path == "the JavaScript library" and not report.defects
    measured = [figure for figure in report.figures if figure.measured is not None]
    assert {figure.attack for figure in measured} >= {"guess", "epsilon"}
    exact = [f for f in measured if f.attack == "guess" and f.exact and f.best is not None and f.low is not None]
    assert exact and all(f.low <= f.best <= f.high for f in exact if f.high is not None and f.reached)
    assert np.isfinite([figure.measured for figure in measured]).all()
