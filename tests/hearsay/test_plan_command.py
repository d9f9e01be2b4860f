"""`hearsay plan`, as people and programs see it."""

import json
import re
from pathlib import Path

import pytest
import typer
from rich.table import Table
from typer.testing import CliRunner

from hearsay.commands.plan import plan
from hearsay.terminal import console
from hearsay.terminal.plans import summary_of
from protocols.planning import Plan, of_100

SURVEY = """
{id: s, title: Colours, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, solution: rs+fd,
 attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 99}, mechanism: oue-z}]}
"""

HEADINGS = (
    "the value never changes (constant)",
    "histories equal up to renaming (renaming)",
    "any two histories (any)",
)

app = typer.Typer()
app.command()(plan)


@pytest.fixture
def survey(tmp_path: Path) -> str:
    path = tmp_path / "survey.yaml"
    path.write_text(SURVEY)
    return str(path)


def test_people_get_tables(survey: str) -> None:
    shown = CliRunner().invoke(app, [survey, "--devices", "5000", "--all"], catch_exceptions=False)
    assert shown.exit_code == 0
    for part in (
        "Colours",
        "grr",
        "oue-z",
        "any two histories",
        "5,000 devices",
        "which attribute is true",
        "zero-fakes",
        "What links two reports",
        "all in one report",
        "Memos, or fresh noise",
        "Trackability",
        "not known",
        "link-by-answer",
        "1.5 eps_1",
    ):
        assert part in shown.output


def test_a_plan_begins_with_six_chances_and_red_are_those_above_90_of_100(survey: str) -> None:
    shown = CliRunner().invoke(app, [survey], catch_exceptions=False, color=True)
    drawn = json.loads(CliRunner().invoke(app, [survey, "--json"], catch_exceptions=False).stdout)
    lines = [" ".join(line.split()) for line in shown.output.splitlines()]
    begin = next(place for place, line in enumerate(lines) if line.startswith("A guess is right in at most"))
    found = [line.split()[0] for line in lines[begin:] if re.match(r"[\d.]+ [a-z7]", line)][:6]
    assert [float(one) for one in found] == pytest.approx([100 * c["right_guess"] for c in drawn["in_short"]], rel=0.01)
    assert found[:2] == ["73.2", "88.1"] and found[5] == "100", (
        "e / (1 + e), e^2 / (1 + e^2), and presence is not private"
    )
    assert "Mechanisms" not in shown.output and "zero-fakes" in shown.output
    table = next(part for part in summary_of(Plan.model_validate(drawn)) if isinstance(part, Table))
    assert [cell for cell in map(str, table.columns[0].cells) if cell.startswith("[red]")] == [
        f"[red]{of_100(c['right_guess'])}[/]" for c in drawn["in_short"] if c["right_guess"] > 0.9
    ]


def test_people_see_which_figures_are_exact_and_between_which_histories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.out, "width", 160)
    path = tmp_path / "survey.yaml"
    terms = "id: s, start: 2026-01-01T00:00:00Z, period: 1d, memo_cap: 1, eps_inf: 1"
    attributes = "attributes: [{name: a, values: [x, y, z], mechanism: MECHANISM}]"
    path.write_text(f"{{{terms}, eps_1: 0.5, {attributes.replace('MECHANISM', 'l-grr')}}}")
    lines = CliRunner().invoke(app, [str(path), "--all"], catch_exceptions=False).output.splitlines()
    rows = [" ".join(line.split()) for line in lines]
    assert "one report 0.5 0.5 exact" in rows
    constant, renaming, anything = (rows.index(heading) for heading in HEADINGS)
    assert "all reports 1 1 exact" in rows[constant:renaming]
    assert "every value it may memoise (1) 1 1 exact" in rows[renaming:anything]
    assert "the same, after an accepted loss 3 3 exact" in rows[renaming:anything]
    assert "10 linked reports 1 1 exact" in rows[anything:]
    assert "10 linked reports, after an accepted loss 13.51 13.51 at most" in rows[anything:]
    path.write_text(f"{{{terms}, {attributes.replace('MECHANISM', 'grr')}}}")
    shown = CliRunner().invoke(app, [str(path), "--all"], catch_exceptions=False).output
    assert "10 linked reports, after an accepted loss no bound no bound" in " ".join(shown.split())


def test_the_devices_are_the_surveys_unless_they_are_given(tmp_path: Path) -> None:
    path = tmp_path / "survey.yaml"
    path.write_text(SURVEY.replace("period: 1d", "period: 1d, devices: 70000, horizon: 7"))
    shown = CliRunner().invoke(app, [str(path), "--all"], catch_exceptions=False).output
    assert "70,000 devices" in shown and "A gap below 7 names the period" in shown
    assert (
        "80 devices" in CliRunner().invoke(app, [str(path), "--all", "--devices", "80"], catch_exceptions=False).output
    )


def test_programs_get_json(survey: str) -> None:
    shown = CliRunner().invoke(app, [survey, "--json", "--error", "0.02"], catch_exceptions=False)
    drawn = json.loads(shown.stdout)
    assert drawn["error"] == 0.02
    assert [attribute["mechanism"] for attribute in drawn["attributes"]] == ["grr", "oue-z"]
    assert drawn["guarantee"]["per_report"]["whole"] == pytest.approx(1)


def test_people_see_what_noise_on_presence_costs(tmp_path: Path) -> None:
    path = tmp_path / "noised.yaml"
    path.write_text("""{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, presence_epsilon: 1, attributes: [
        {name: a, range: {last: 99}, mechanism: oue}]}""")
    shown = CliRunner().invoke(app, [str(path), "--all", "--devices", "1000"], catch_exceptions=False)
    text = " ".join(shown.stdout.split())
    assert "The same with presence_epsilon = 1" in text
    assert " 71 " in text and " 0.6556 " in text and "standard error of 12.7" in text
    assert "useless-with-presence-noise" in text
    read = json.loads(CliRunner().invoke(app, [str(path), "--devices", "1000", "--json"]).stdout)
    assert read["presence"]["attributes"]["a"]["largest"] == 71


def test_people_see_what_readers_of_results_learn_and_which_budget_keeps_a_figure(tmp_path: Path) -> None:
    path = tmp_path / "central.yaml"
    path.write_text("""{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2, devices: 6500,
        central: {target: 0.5, per: 1w}, attributes: [
        {name: gender, values: [a, b, c]}, {name: age, range: {last: 9}, mechanism: l-grr}]}""")
    text = " ".join(CliRunner().invoke(app, [str(path), "--all"], catch_exceptions=False).stdout.split())
    assert "delta 1e-08, 3,250 honest answers or more" in text and "none live, and none of weeks" in text
    assert "a week 0.756 (gender) 0.799 (gender) 0.787 (gender)" in text
    assert "at most 0.5 in 1w eps_1 1.47, which gives 0.499 (gender)" in text
    read = json.loads(CliRunner().invoke(app, [str(path), "--json"]).stdout)
    assert list(read["central"]) == ["day", "week", "month", "year"]
    assert read["central"]["week"]["constant"]["by_attribute"] == {"gender": 0.756, "age": 0.58}
    assert (read["target"]["eps_1"], read["target"]["figure"]["epsilon"]) == (1.47, 0.499)
