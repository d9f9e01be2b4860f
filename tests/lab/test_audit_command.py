"""`hearsay audit`, as people, programs and CI see it."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hearsay.survey_files import example_text
from hearsay.terminal.console import Lines
from hearsay.terminal.explaining import BROKEN, REFUSED
from lab.attacks.coins import experiments
from lab.attacks.report import ATTACKS, AuditReport, Figure, plain, schema, worst
from protocols.errors import HearsayError
from tests.helpers.browser import events_in
from tests.lab.calling import call, figures_of

ROOT = Path(__file__).parents[2]
SURVEY = """
{id: colours, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, solution: SOLUTION,
 attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 19}}]}
"""


def written(directory: Path, solution: str) -> Path:
    path = directory / "survey.yaml"
    path.write_text(SURVEY.replace("SOLUTION", solution))
    return path


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    return written(tmp_path, "smp")


def reported(survey: Path, options: str = "") -> AuditReport:
    return AuditReport.model_validate(figures_of(f"audit {survey} {options}"))


def attacked(report: AuditReport) -> set[str]:
    """The attacks that were carried out."""
    return {figure.attack for figure in report.figures if figure.measured is not None}


@pytest.mark.parametrize("solution", ["smp", "spl", "rs+fd"])
def test_without_options_everything_is_computed(tmp_path: Path, solution: str) -> None:
    report = reported(written(tmp_path, solution))
    attacks = {figure.attack for figure in report.figures}
    assert attacks == set(ATTACKS) - {"reidentify", "place"} - (set() if solution == "rs+fd" else {"which"})
    assert all(figure.best is not None and figure.luck is not None for figure in report.figures)
    assert report.devices is None and report.crowd == 10_000


def test_of_sets_and_thresholds_guesses_are_carried_out_and_the_rest_is_computed(tmp_path: Path) -> None:
    path, table = tmp_path / "survey.yaml", tmp_path / "people.csv"
    path.write_text("""{id: home, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2, attributes: [
      {name: on, several: 3, values: [a, b, c, d, e, f]},
      {name: minutes, range: {last: 30}, mechanism: threshold, parameter: 3}]}""")
    report = reported(path, "--devices 4000 --periods 3 --alpha 0.0001")
    guesses = [figure for figure in report.figures if figure.measured is not None]
    assert {(figure.target, figure.reports) for figure in guesses} == {
        (n, t) for n in ("on", "minutes") for t in (1, 3)
    }
    assert all((f.luck or 1) < (f.measured or 0) and (f.low or 1) <= (f.best or 0) <= (f.high or 0) for f in guesses)
    assert not report.defects and {"epsilon", "link"} <= {figure.attack for figure in report.figures}
    table.write_text("on,minutes\na,3\n")
    for options, said in (("--devices 10 --only epsilon", "add guess"), (f"--csv {table}", "no sets here")):
        error = call(f"audit {path} {options}").exception
        assert isinstance(error, HearsayError) and said in str(error), error


def test_people_get_tables(survey: Path) -> None:
    shown = call(f"audit {survey} --only guess,link,epsilon,forge")
    assert shown.exit_code == 0
    for part in ("Guessing a value", "even shares", "Recognising a device", "the whole tuple", "any two histories"):
        assert part in shown.output
    assert "few is guessed right in" in shown.output.lower() and "by luck, in 33.33 %" in " ".join(shown.output.split())
    assert "No limit" not in shown.output, "none was given"
    assert "No limit is exceeded: guess=1" in call(f"audit {survey} --only guess --fail-above guess=1").output


def test_the_worst_figure_is_a_sentence_with_its_luck_and_the_published_schema_is_that_of_the_report() -> None:
    def guessed(target: str, best: float, **more: Any) -> Figure:
        return plain("guess", target, "even shares", inf, best, luck=1 / 3, **more)

    figures = [guessed("age_group", 0.5), guessed("gender", 0.965), plain("guess", "b", "", 1, 7.0, unit="bits")]
    assert worst("guess", figures) == (
        "Gender is guessed right in 96.50 % of all cases (computed; all reports); by luck, in 33.33 %."
    )
    assert worst("guess", [guessed("age_group", 0.5, measured=0.5)]).startswith("Age group is")
    assert "(measured; all reports)" in worst("guess", [guessed("age_group", 0.4, measured=0.5)])
    promised = [plain("epsilon", "whole tuples", "", 1, best) for best in (2.0, 4.0)]
    assert worst("epsilon", promised).endswith("from 1 report is at most 4.000 (computed; not measured).")
    assert "at most 2.000 (measured, it is at least 1.500)" in worst(
        "epsilon", [*promised, plain("epsilon", "a", "", 1, 2.0, measured=1.5)]
    )
    assert worst("link", figures) == ""
    assert (ROOT / "docs/schemas/audit.json").read_text() == schema(), "print it with python -m lab.attacks.report"


def test_devices_are_measured_and_the_same_seed_gives_the_same_bytes(survey: Path) -> None:
    first, second = (call(f"audit {survey} --devices 600 --periods 3 --targets 100 --seed 6 --json") for _ in range(2))
    assert first.exit_code == 0 and first.stdout == second.stdout
    report = AuditReport.model_validate_json(first.stdout)
    assert (report.devices, report.periods, report.source) == (600, 3, "steady")
    assert attacked(report) == {"guess", "link", "forge", "epsilon", "reidentify", "read"}
    for figure in report.figures:
        if figure.unit == "chance" and figure.measured is not None:
            assert figure.low is not None and figure.high is not None and figure.trials
            assert figure.low <= figure.measured <= figure.high


def test_values_may_change_devices_may_be_absent_and_progress_has_dates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lines, "EVERY_SECONDS", 0.0)
    options = "--scenario telemetry --devices 600 --periods 3 --targets 100 --prior published --json"
    done = call(f"audit {written(tmp_path, 'rs+fd')} {options}")
    assert attacked(AuditReport.model_validate_json(done.stdout)) == set(ATTACKS) - {"place"}
    assert "Fri 2026-01-02, 2 of 3: " in done.stderr


COMMUTERS = """
{id: town, start: 2026-01-05T00:00:00Z, period: 1h, eps_inf: 2, eps_1: 1, horizon: 24,
 attributes: [{name: dwell, range: {first: 1, last: 8}, mechanism: l-osue}]}
"""


@pytest.mark.long(part="statistics")
def test_people_of_every_scenario_are_audited(tmp_path: Path) -> None:
    path = tmp_path / "survey.yaml"
    path.write_text(example_text("mobility-week"))
    festival = reported(path, "--scenario virtual-humans --devices 2000 --only link,guess")
    path.write_text(COMMUTERS)
    town = reported(path, "--scenario commuters --devices 1500 --periods 4 --only link,guess")
    for report, source in ((festival, "virtual-humans"), (town, "commuters")):
        assert report.source == source and report.defects == ()
        links = [figure for figure in report.figures if figure.attack == "link" and figure.measured is not None]
        assert links and all((figure.trials or 0) < (report.devices or 0) for figure in links), "some are absent"


def test_a_table_of_people_is_audited_against_another_one(survey: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    for name, rows in (("people", 400), ("background", 900)):
        lines = [f"{'abc'[random.integers(3)]},{random.integers(20)}" for _ in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["few,many", *lines, ""]))
    people = tmp_path / "people.csv"
    report = reported(
        survey, f"--only guess,reidentify --periods 2 --csv {people} --background {tmp_path}/background.csv"
    )
    assert report.devices == 400 and any("of 900 records" in figure.target for figure in report.figures)
    commonest = max(people.read_text().count(f"\n{value},") for value in "abc") / 400
    few = next(f for f in report.figures if (f.attack, f.target, f.reports) == ("guess", "few", None))
    assert few.knows == "the shares of all values" and few.histogram == pytest.approx(commonest), "they are exact"
    people.write_text("few,many\na,1\n")
    assert reported(survey, f"--only guess,link,epsilon,forge --periods 2 --csv {people}").devices == 1, (
        "nobody has the history of another one"
    )
    people.write_text("few,many\na,none\n")
    refused = call(f"audit {survey} --csv {people}").exception
    assert "1 of 1 rows have no value of 'many' that the survey lists" in str(refused)


def test_published_attackers_stand_beside_the_best_and_wrong_usage_is_refused(survey: Path) -> None:
    report = reported(survey, "--attacker published --only epsilon")
    weak = [figure for figure in report.figures if "published attacker" in figure.knows]
    assert len(weak) == 2 and all((figure.measured or 0) <= (figure.best or 0) for figure in weak)
    for options in ("--only luck", "--periods 3", "--targets 0", "--csv x.csv --devices 3"):
        assert call(f"audit {survey} {options}").exit_code == 2


def test_a_figure_that_cannot_be_is_a_defect(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(scheme: Any, periods: int) -> Any:
        """A promise that the devices do not keep."""
        planned = experiments(scheme, periods)
        return [replace(one, looks=[replace(look, promise=0.1) for look in one.looks]) for one in planned]

    monkeypatch.setattr("lab.auditing.auditing.experiments", too_much)
    ended = call(f"audit {survey} --devices 2000 --periods 2 --only epsilon")
    assert ended.exit_code == BROKEN
    assert "is proven, and 0.1 is promised" in " ".join(ended.stderr.split())


def test_shares_come_from_a_file(survey: Path, tmp_path: Path) -> None:
    shares = tmp_path / "shares.json"
    shares.write_text(json.dumps({"few": {"a": 0.8, "b": 0.1, "c": 0.1}}))
    report = reported(survey, f"--prior {shares} --only guess")
    known = [figure for figure in report.figures if figure.target == "few" and figure.reports == 1]
    assert known[0].histogram == pytest.approx(0.8) and (known[0].best or 0) >= 0.8
    for wrong in ("{}x", '{"few": {"a": 1}}', '{"few": {"a": 2, "b": -1, "c": 0}}', '{"none": {}}'):
        shares.write_text(wrong)
        assert isinstance(call(f"audit {survey} --prior {shares}").exception, HearsayError)


def test_the_page_has_every_figure_as_it_was_reported(survey: Path, tmp_path: Path) -> None:
    target = tmp_path / "audit.html"
    failed = call(f"audit {survey} --html {target} --fail-above guess=0.5")
    assert failed.exit_code == REFUSED
    assert "guess of few (even shares; 10 reports) reaches 0.7" in " ".join(failed.stderr.split())
    (told,) = events_in(target.read_text())
    assert (told["kind"], told["record"]["title"]) == ("audit", "Audit of colours")
    figures = [figure for attack in told["record"]["attacks"] for figure in attack["figures"]]
    assert {figure["attack"] for figure in figures} == {figure.attack for figure in reported(survey).figures}
    assert len(figures) == len(reported(survey).figures) and told["record"]["breaches"]


@pytest.mark.parametrize(("only", "periods"), [("reidentify,forge", 1), ("link", 2), ("link,guess", 10)])
def test_devices_report_in_as_many_periods_as_the_attacks_need(survey: Path, only: str, periods: int) -> None:
    report = reported(survey, f"--devices 100 --targets 10 --only {only}")
    assert report.periods == periods and attacked(report) == set(only.split(","))


def test_several_budgets_are_one_table(survey: Path) -> None:
    asked = f"audit {survey} --eps 0.2,2,4 --only guess,epsilon"
    found = {
        eps: AuditReport.model_validate(report) for eps, report in json.loads(call(f"{asked} --json").stdout).items()
    }
    alone = reported(survey, "--only guess,epsilon")
    assert list(found) == ["0.2", "2", "4"] and found["2"].figures == alone.figures, "the survey's own budget"
    chances = [next(f.best or 0.0 for f in report.figures if f.target == "few") for report in found.values()]
    assert chances == sorted(chances) and chances[0] < chances[2]
    shown = call(asked).output
    assert shown.count("Guessing a value") == 1 and all(f"{100 * chance:.2f} %" in shown for chance in chances)
    failed = call(f"{asked} --fail-above guess=0.8")
    assert failed.exit_code == REFUSED and "eps 4: guess" in failed.stderr and "eps 0.2: guess" not in failed.stderr
    for wrong in ("x", ",", "0", "1,100"):
        assert isinstance(call(f"audit {survey} --eps {wrong}").exception, HearsayError)
    assert call(f"audit {survey} --eps 1,2 --html page.html").exit_code == 2
