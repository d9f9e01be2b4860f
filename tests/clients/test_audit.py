"""Audits of both device libraries as programs: healthy ones keep every promise, and planted defects are refuted."""

import shlex
import sys
from contextlib import closing
from http.client import HTTPConnection, RemoteDisconnected
from itertools import pairwise
from pathlib import Path

import pytest

from lab.auditing import programs
from lab.auditing.gateways import BUSY, CUT, LATE, gateway, refusing
from protocols.errors import SettingsError
from tests.clients.planting import FAULTS, LIBRARY, PAIR, SETS, SYMBOLS, plant
from tests.clients.program import APART, DEFECTS
from tests.lab.calling import LEVEL, NEAR, audited, call, conduct_defects, needed, refuted

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


def test_a_gateway_of_audits_refuses_some_requests_and_says_which() -> None:
    """Busy, late and cut in turns; what was refused was seen all the same."""
    refusals = iter([BUSY, LATE, CUT, None])
    answers = []
    with gateway(b"{}", lambda report: next(refusals)) as (address, sent):
        for _ in range(4):
            with closing(HTTPConnection(address.removeprefix("http://"), timeout=20)) as connection:
                connection.request("POST", "/v1/reports", b"report")
                try:
                    answers.append(connection.getresponse().status)
                except RemoteDisconnected:
                    answers.append(0)
    assert answers == [503, 422, 0, 201]
    assert [request.taken for request in sent] == [False, False, False, True]
    assert all(request.body == b"report" for request in sent)


def test_outages_last_and_begin_as_often_as_they_should() -> None:
    judge = refusing(0.05, 1 / 3, seed=1)
    refused = [judge(True) is not None for _ in range(20_000)]
    begun = sum(now and not before for before, now in pairwise(refused))
    lasting = sum(now and before for before, now in pairwise(refused))
    assert 0.045 < begun / refused.count(False) < 0.055
    assert 0.28 < lasting / refused.count(True) < 0.39
    late = [refusing(1.0, 1.0, seed=1)(False) for _ in range(4)]
    assert LATE not in late, "terms are never late"


def test_a_plan_is_said_before_any_device_is_started(tmp_path: Path) -> None:
    (tmp_path / "survey.yaml").write_text(SYMBOLS)
    result = call(f"audit {tmp_path / 'survey.yaml'} --only conduct --device no-such-program")
    assert isinstance(result.exception, SettingsError)
    assert "retries have other bytes: retry-changed" in result.stderr
    few = call(f"audit {tmp_path / 'survey.yaml'} --only conduct --devices 40 --device no-such-program").stderr
    assert "of 40 devices is tested in 4 periods" in few
    assert "have no noise: answers-off-law  (more than there are)" in few


SLOW = pytest.mark.long(part="clients")
FIRST_FAULT = "the truth on a retry"
A_FEW_FAULTS = ("one value of bits has no second round", "a set without paddings", "a moment tells the middle value")


@pytest.mark.parametrize("name", [FIRST_FAULT, *[pytest.param(each, marks=SLOW) for each in A_FEW_FAULTS]])
def test_a_fault_is_refuted_by_as_many_devices_as_the_audit_says(tmp_path: Path, name: str) -> None:
    """Some of them: `python -m tests.lab conduct` plants all."""
    fault = FAULTS[name]
    devices = needed(fault.survey, tmp_path)[fault.deviation]
    found = conduct_defects(fault.survey, tmp_path, devices, plant(tmp_path / "library", fault))
    assert fault.finding in found


@pytest.mark.long(part="clients")
@pytest.mark.parametrize("mode", [(), (APART,)])
def test_the_conduct_of_devices_is_not_refuted(tmp_path: Path, library: str, mode: tuple[str, ...]) -> None:
    for survey in (PAIR, SETS):
        assert not conduct_defects(survey, tmp_path, 60, program(library, *mode))


def test_every_planted_fault_changes_the_library_as_it_is() -> None:
    """Lines that are planted stand in the library, or `make attacks` would be the first to notice."""
    for fault in FAULTS.values():
        for module, before, _ in fault.edits:
            assert (LIBRARY / module).read_text().count(before) == 1, f"{module}: {before}"


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
    assert report.conduct is not None
    assert report.conduct.level == LEVEL / 4
    assert report.conduct.tests
