"""Audits of both device libraries as programs: healthy ones keep every promise, and planted defects are refuted."""

import shlex
import sys
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from lab.auditing import programs
from lab.auditing.gateways import gateway
from protocols.errors import SettingsError
from tests.clients.program import DEFECTS
from tests.lab.calling import NEAR, audited, call, refuted

SEVERAL = """
{id: colours, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, solution: SOLUTION,
 attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 9}, mechanism: MECHANISM}]}
"""


def program(library: str, *defect: str) -> str:
    return shlex.join([sys.executable, "-m", "tests.clients.program", library, *defect])


def test_a_program_that_does_not_answer_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PATIENCE_SECONDS", 0.5)
    (tmp_path / "survey.yaml").write_text(NEAR)
    silent = "sh -c 'printf {; exec sleep 60'"
    for command, said in (("no-such-program", "cannot be started"), ("true", "did not answer"), (silent, "did not")):
        error = call(f"audit {tmp_path / 'survey.yaml'} --devices 2 --device", command).exception
        assert isinstance(error, SettingsError) and said in str(error)


def test_reports_of_unknown_length_are_refused_by_the_gateway_of_audits() -> None:
    with gateway(b"{}") as (address, sent), closing(HTTPConnection(address.removeprefix("http://"))) as connection:
        connection.putrequest("POST", "/v1/reports")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()  # what follows could meet a connection that is closed
        assert connection.getresponse().status == 411 and not sent


@pytest.mark.parametrize("options", ["", "--devices 2 --kafka localhost:1", "--devices 2 --only which"])
def test_what_cannot_be_audited_of_a_program_is_refused(tmp_path: Path, options: str) -> None:
    (tmp_path / "survey.yaml").write_text(NEAR)
    assert call(f"audit {tmp_path / 'survey.yaml'} --device true {options}").exit_code == 2


LONG = [pytest.param(name, marks=pytest.mark.long(part="clients")) for name in DEFECTS if name != "gap tells value"]


@pytest.mark.parametrize("defect", ["gap tells value", *LONG])
def test_what_is_planted_in_a_library_is_refuted(tmp_path: Path, library: str, defect: str) -> None:
    code, sizes = DEFECTS[defect]
    assert code in refuted(tmp_path, f"{sizes} --device", program(library, defect))


@pytest.mark.long(part="clients")
@pytest.mark.parametrize(("solution", "mechanism"), [("smp", "l-osue"), ("spl", "loloha"), ("rs+fd", "grr")])
def test_devices_keep_every_promise_that_an_audit_measures(
    tmp_path: Path, library: str, solution: str, mechanism: str
) -> None:
    survey = SEVERAL.replace("SOLUTION", solution).replace("MECHANISM", mechanism)
    report = audited(survey, tmp_path, "--devices 60 --periods 2 --device", program(library))
    assert not report.defects
    measured = [figure for figure in report.figures if figure.measured is not None]
    assert {figure.attack for figure in measured} >= {"guess", "link", "epsilon"}
