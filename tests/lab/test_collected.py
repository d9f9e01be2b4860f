"""Verdicts on what was collected: honest devices pass, in whole lives of surveys too, forged reports do not."""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hearsay.library.answering import Fleet
from hearsay.reports.files import open_results
from hearsay.terminal.explaining import REFUSED
from lab.attacks.report import AuditReport
from producers.scenarios import SCENARIOS, scenario
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, encode_clock
from tests.helpers.forging import collect
from tests.helpers.surveys import of_size, scheme_with
from tests.lab.calling import call
from views.local import collector
from views.reading import Results

DEVICES, PERIODS = 1500, 3


def survey(**terms: Any) -> Scheme:
    few, many = of_size(3, "few", mechanism="l-grr"), of_size(20, "many", mechanism="l-osue")
    both = {"eps_inf": 4.0, "eps_1": 2.0, "solution": "spl", "clock": "source", "horizon": 3}
    return scheme_with(few, many, id="forged", **{**both, **terms})


def test_honest_devices_are_consistent_in_every_period(tmp_path: Path) -> None:
    collect(tmp_path, survey(), DEVICES, PERIODS)
    with open_results(None, tmp_path, None) as (results, _):
        histograms, reports = results.histograms("forged"), results.mobility("forged")
    verdicts = [histogram.integrity for histogram in histograms]
    assert [verdict.verdict for verdict in verdicts if verdict is not None] == ["consistent"] * PERIODS
    assert [report.window(t, t).integrity for t, report in enumerate(reports)] == verdicts
    assert verdicts[0] is not None and verdicts[0].flow is None
    assert verdicts[2] is not None and verdicts[2].flow is not None
    assert (verdicts[2].flow.claimed, verdicts[2].flow.reported) == (DEVICES, DEVICES)
    shown = call(f"report --data {tmp_path}")
    assert "0 of 3 periods contradict honest devices" in shown.output
    audited = call(f"audit --data {tmp_path} --json")
    assert audited.exit_code == 0
    report = AuditReport.model_validate_json(audited.stdout)
    assert [one.period for one in report.integrity] == [0, 1, 2] and not report.breaches
    assert {figure.attack for figure in report.figures} == {"link", "forge"}


def test_forged_reports_are_found_named_and_refused(tmp_path: Path) -> None:
    collect(tmp_path, survey(), DEVICES, PERIODS, forged=200)
    audited = call(f"audit --data {tmp_path} forged")
    assert audited.exit_code == REFUSED
    assert "contradicted" in audited.output and "period 2, many" in audited.output
    assert "period 2 does not fit honest devices" in audited.stderr
    shown = call(f"report --data {tmp_path}")
    assert "1 of 3 periods contradict honest devices" in shown.output
    document = json.loads(call(f"report --data {tmp_path} --robust 0.2 --json").stdout)
    first = document["robust"]["attributes"]["many"]
    truth = 1 / 20
    assert first["low"][0] <= truth <= first["high"][0] and abs(sum(first["normalised"]) - 1) < 1e-4
    shares = document["windows"][0]["attributes"][1]["values"]["share"]["value"]
    assert len(first["normalised"]) == len(shares) == 20, "the unbiased estimate is still there"
    assert "if up to 20.0% of the reports are forged" in call(f"report --data {tmp_path} --robust 0.2").output
    wrong = call(f"report --data {tmp_path} --robust 0.7")
    assert wrong.exit_code != 0


def test_one_forged_gap_more_than_there_were_reports_breaks_the_flow(tmp_path: Path) -> None:
    collect(tmp_path, survey(), DEVICES, PERIODS, false_gaps=1)
    with open_results(None, tmp_path, None) as (results, _):
        last = results.histograms("forged")[-1].integrity
    assert last is not None and last.alarms == (("", "flow"),) and last.verdict == "contradicted"
    assert last.flow is not None
    assert (last.flow.period, last.flow.claimed, last.flow.reported) == (1, DEVICES + 1, DEVICES)
    report = AuditReport.model_validate_json(call(f"audit --data {tmp_path} --json").stdout)
    assert [finding.code for finding in report.findings] == ["forged-returners"]


def test_where_presence_has_noise_no_verdict_and_no_width_is_published(tmp_path: Path) -> None:
    collect(tmp_path, survey(presence_epsilon=2.0), 500, 2, forged=100)
    with open_results(None, tmp_path, None) as (results, _):
        for histogram in results.histograms("forged"):
            assert histogram.integrity is None
            assert all(a.statistics is None or a.statistics.widths is None for a in histogram.attributes)
        assert all(window.integrity is None for report in results.mobility("forged") for window in report.windows)
    assert "Integrity" not in call(f"report --data {tmp_path}").output
    (noised,) = json.loads(call(f"audit --data {tmp_path} --json").stdout)["findings"]
    assert noised["code"] == "noised-counts" and "presence_epsilon: 2" in noised["text"]


def test_a_smaller_crowd_than_declared_and_a_wrong_prior_are_claims_that_the_data_contradict(tmp_path: Path) -> None:
    wide = of_size(100, "wide", mechanism="l-osue")
    scheme = scheme_with(wide, id="crowd", eps_inf=2.0, eps_1=1.0, clock="source", horizon=2, devices=1_000_000)
    collect(tmp_path / "crowd", scheme, 80, 2)
    found = call(f"audit --data {tmp_path / 'crowd'} --json")
    codes = {one["code"] for one in json.loads(found.stdout)["findings"]}
    assert {"crowd-below-claim", "small-crowd"} <= codes
    prior = [0.9, 0.05, 0.05]
    asked = [of_size(3, name, mechanism="grr", prior=prior) for name in "ab"]
    scheme = scheme_with(*asked, id="prior", eps=4.0, solution="rs+rfd", clock="source")
    collect(tmp_path / "prior", scheme, 3000, 2)
    found = call(f"audit --data {tmp_path / 'prior'} --json")
    assert [one["code"] for one in json.loads(found.stdout)["findings"]] == ["prior-off", "prior-off"]


@pytest.mark.parametrize("words", ["", "--data . --devices 5"])
def test_what_to_audit_must_be_clear(words: str) -> None:
    assert call(f"audit {words}").exit_code == 2


KEY = b"the operator's key of honest lives"
LIVES = {"telemetry": 12, "virtual-humans": 7, "commuters": 30, "demand": 30}
"""Every scenario, and how many periods of it are collected: the festival's days, a day and more of commuters."""
MECHANISMS = ("l-osue", "l-grr")  # in turns, so that every check has something to look at


def alarms(name: str, devices: int, seed: int) -> Counter[str]:
    """In how many attributes and periods each check was an alarm, in a survey that asks for all that a scenario has."""
    people = scenario(name, devices=devices, periods=LIVES[name], seed=seed)
    scheme = _asking(people.attributes)
    fleet = Fleet(scheme.survey, devices, secret=seed.to_bytes(32, "big"))
    found: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as directory,
        collector(Path(directory), [scheme.survey], KEY, KEY) as app,
    ):
        for period in range(people.periods):
            present = people.presences(period)
            values = {a: np.array(people.attributes[a])[places] for a, places in present.values.items()}
            for frame in fleet.report(period, values, present.devices):
                app.send(0, FRAME, frame)
            app.send(0, CLOCK, encode_clock(Clock(scheme.survey.id, period), KEY))
            app.flush()
        finals = Results(app.store).histograms(scheme.survey.id)
    assert len(finals) == people.periods
    for final in finals:
        assert final.integrity is not None, "every period has a verdict"
        found.update(check for _, check in final.integrity.alarms)
    return found


def _asking(attributes: dict[str, tuple[str, ...]]) -> Scheme:
    asked = [
        {"name": name, "values": values, "mechanism": MECHANISMS[at % len(MECHANISMS)]}
        for at, (name, values) in enumerate(attributes.items())
    ]
    return scheme_with(*asked, id="honest", clock="source", horizon=3, eps_inf=4.0, eps_1=2.0)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_period_of_honest_people_is_contradicted_in_the_life_of_a_survey(name: str) -> None:
    """Values change and people are absent, so a jump may be an alarm: it says "changed", not "contradicted".

    At most one life in a hundred may have another one. `make attacks` counts more of them.
    """
    assert set(LIVES) == set(SCENARIOS)
    for seed in range(2):
        assert set(alarms(name, 800, seed)) <= {"jump"}
