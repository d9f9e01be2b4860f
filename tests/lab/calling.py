"""Commands as people and programs call them."""

import json
import shlex
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from hearsay.cli import app
from hearsay.terminal.explaining import BROKEN
from lab.attacks.report import AuditReport

LEVEL = 1e-4
NEAR = """
{id: near, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 1, eps_1: 0.8, horizon: 7,
 attributes: [{name: few, values: [a, b, c, d], mechanism: l-grr}]}
"""
"""Its budgets are near together: reports show most of a memo, and few devices show that it was changed."""


def call(words: str, *more: object) -> Result:
    """`hearsay` with these words, as a shell would split them, and with more arguments."""
    return CliRunner().invoke(app, [*shlex.split(words), *map(str, more)])


def figures_of(words: str, *more: object) -> dict[str, Any]:
    """What a command prints as JSON."""
    result = call(words, *more, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def audited(survey: str, directory: Path, options: str, *more: str) -> AuditReport:
    """What `hearsay audit` says of devices that answer this survey, at `LEVEL`."""
    (directory / "survey.yaml").write_text(survey)
    result = call(f"audit {directory / 'survey.yaml'} --alpha {LEVEL} --json {options}", *more)
    assert result.exit_code in (0, BROKEN), result.exception or result.output
    return AuditReport.model_validate_json(result.stdout)


def needed(survey: str, directory: Path) -> dict[str, int]:
    """How many devices each deviation needs, as `hearsay audit` says before any device is started."""
    plan = audited(survey, directory, "--only conduct").conduct
    assert plan is not None
    assert not plan.tests
    return {need.deviation: need.devices for need in plan.needs}


def conduct_defects(survey: str, directory: Path, devices: int, program: str, seed: int = 0) -> set[str]:
    """The codes of the defects that tests of the conduct of a program's devices show."""
    options = f"--only conduct --devices {devices} --seed {seed} --device"
    return {defect.code for defect in audited(survey, directory, options, program).defects}


def refuted(directory: Path, options: str, *more: str) -> set[str]:
    """The codes of the defects that coins and what stands beside the answers show, in a survey of near budgets."""
    return {defect.code for defect in audited(NEAR, directory, f"--only epsilon {options}", *more).defects}
