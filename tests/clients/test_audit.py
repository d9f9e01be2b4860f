"""Audits of both device libraries as programs: healthy ones keep every promise, and planted defects are refuted."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from hearsay.terminal.exits import BROKEN
from lab.audit.report import AuditReport
from protocols.errors import SettingsError
from tests.clients.libraries import LIBRARIES
from tests.clients.program import DEFECTS
from tests.lab.calling import call

ALPHA, DEVICES, PERIODS = 1e-4, 100, 4
NEAR = """
{id: near, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 1, eps_1: 0.8, horizon: 7,
 attributes: [{name: few, values: [a, b, c, d], mechanism: l-grr}]}
"""
"""Its budgets are near together: reports show most of a memo, and few devices show that it was changed."""
SEVERAL = """
{id: colours, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, solution: SOLUTION,
 attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 9}, mechanism: MECHANISM}]}
"""


def audited(survey: Path, command: str, devices: int, periods: int, options: str = "", seed: int = 0) -> AuditReport:
    """What `hearsay audit --device` says of a program."""
    sizes = f"--devices {devices} --periods {periods} --alpha {ALPHA} --seed {seed} {options}"
    result = call(f"audit {survey} {sizes} --json --device", command)
    assert result.exit_code in (0, BROKEN), result.exception or result.output
    return AuditReport.model_validate_json(result.stdout)


def program(library: str, *defect: str) -> str:
    return shlex.join([sys.executable, "-m", "tests.clients.program", library, *defect])


def near(directory: Path) -> Path:
    (directory / "survey.yaml").write_text(NEAR)
    return directory / "survey.yaml"


def codes(report: AuditReport) -> set[str]:
    return {defect.code for defect in report.defects}


def test_a_gap_that_is_not_true_is_refuted_with_a_few_devices(tmp_path: Path) -> None:
    report = audited(near(tmp_path), program("python", "gap tells value"), 4, 2, "--only epsilon")
    assert codes(report) == {"gap-untrue"} and report.path == program("python", "gap tells value")


def test_a_program_that_does_not_answer_is_an_error_that_says_so(tmp_path: Path) -> None:
    for command, said in (("no-such-program", "cannot be started"), ("true", "did not answer")):
        error = call(f"audit {near(tmp_path)} --devices 2 --device {command}").exception
        assert isinstance(error, SettingsError) and said in str(error)


@pytest.mark.long(part="clients")
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("defect", DEFECTS)
def test_what_is_planted_in_a_library_is_refuted(tmp_path: Path, library: str, defect: str) -> None:
    report = audited(near(tmp_path), program(library, defect), DEVICES, PERIODS, "--only epsilon")
    assert DEFECTS[defect] in codes(report)


@pytest.mark.long(part="clients")
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("solution", "mechanism"), [("smp", "l-osue"), ("spl", "loloha"), ("rs+fd", "grr")])
def test_devices_keep_every_promise_that_an_audit_measures(
    tmp_path: Path, library: str, solution: str, mechanism: str
) -> None:
    survey = tmp_path / "survey.yaml"
    survey.write_text(SEVERAL.replace("SOLUTION", solution).replace("MECHANISM", mechanism))
    report = audited(survey, program(library), 120, 2)
    assert not report.defects
    measured = [figure for figure in report.figures if figure.measured is not None]
    assert {figure.attack for figure in measured} >= {"guess", "link", "epsilon"}
