"""`hearsay plan`, as people and programs see it."""

import json
import re
from pathlib import Path

import pytest
from rich.table import Table
from typer.testing import CliRunner

from hearsay.cli import app
from hearsay.terminal import console
from hearsay.terminal.plans import summary_of
from protocols.planning import Plan, of_100
from protocols.planning.precision import standard_error
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.pages.towns import square

SURVEY = """
{id: s, title: Colours, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, solution: rs+fd,
 attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 99}, mechanism: oue-z}]}
"""

HEADINGS = (
    "the value never changes (constant)",
    "histories equal up to renaming (renaming)",
    "any two histories (any)",
)


def shown(path: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["plan", str(path), *words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def written(directory: Path, text: str = SURVEY) -> Path:
    path = directory / "survey.yaml"
    path.write_text(text)
    return path


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    return written(tmp_path)


PARTS = """Colours | grr | oue-z | any two histories | 5,000 devices | which attribute is true | zero-fakes |
 What links two reports | not known | all in one report |
 Memos, or fresh noise | Trackability | link-by-answer | 1.5 eps_1"""


def test_people_get_tables(survey: Path) -> None:
    found = shown(survey, "--devices", "5000", "--all")
    assert [part for part in map(str.strip, PARTS.split("|")) if part not in found] == []


def test_a_plan_begins_with_six_chances_and_red_are_those_above_90_of_100(survey: Path) -> None:
    printed = CliRunner().invoke(app, ["plan", str(survey)], catch_exceptions=False, color=True)
    drawn = json.loads(shown(survey, "--json"))
    lines = [" ".join(line.split()) for line in printed.output.splitlines()]
    begin = next(place for place, line in enumerate(lines) if line.startswith("A guess is right in at most"))
    found = [line.split()[0] for line in lines[begin:] if re.match(r"[\d.]+ [a-z7]", line)][:6]
    assert [float(one) for one in found] == pytest.approx([100 * c["right_guess"] for c in drawn["in_short"]], rel=0.01)
    assert found[:2] == ["73.2", "88.1"] and found[5] == "100", (
        "e / (1 + e), e^2 / (1 + e^2), and presence is not private"
    )
    assert "Mechanisms" not in printed.output and "zero-fakes" in printed.output
    table = next(part for part in summary_of(Plan.model_validate(drawn)) if isinstance(part, Table))
    assert [cell for cell in map(str, table.columns[0].cells) if cell.startswith("[red]")] == [
        f"[red]{of_100(c['right_guess'])}[/]" for c in drawn["in_short"] if c["right_guess"] > 0.9
    ]


def test_people_see_which_figures_are_exact_and_between_which_histories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.out, "width", 160)
    terms = "id: s, start: 2026-01-01T00:00:00Z, period: 1d, memo_cap: 1, eps_inf: 1"
    attributes = "attributes: [{name: a, values: [x, y, z], mechanism: MECHANISM}]"
    path = written(tmp_path, f"{{{terms}, eps_1: 0.5, {attributes.replace('MECHANISM', 'l-grr')}}}")
    rows = [" ".join(line.split()) for line in shown(path, "--all").splitlines()]
    assert "one report 0.5 0.5 exact" in rows
    constant, renaming, anything = (rows.index(heading) for heading in HEADINGS)
    assert "all reports 1 1 exact" in rows[constant:renaming]
    assert "every value it may memoise (1) 1 1 exact" in rows[renaming:anything]
    assert "the same, after an accepted loss 3 3 exact" in rows[renaming:anything]
    assert "10 linked reports 1 1 exact" in rows[anything:]
    assert "10 linked reports, after an accepted loss 9.026 9.026 at most" in rows[anything:]
    path.write_text(f"{{{terms}, {attributes.replace('MECHANISM', 'grr')}}}")
    unbounded = "10 linked reports, after an accepted loss no bound no bound"
    assert unbounded in " ".join(shown(path, "--all").split())


def test_the_devices_are_the_surveys_unless_they_are_given(tmp_path: Path) -> None:
    path = written(tmp_path, SURVEY.replace("period: 1d", "period: 1d, devices: 70000, horizon: 7"))
    text = shown(path, "--all")
    assert "70,000 devices" in text and "A gap below 7 names the period" in text
    assert "80 devices" in shown(path, "--all", "--devices", "80")


def test_programs_get_json(survey: Path) -> None:
    drawn = json.loads(shown(survey, "--json", "--error", "0.02"))
    assert drawn["error"] == 0.02
    assert [attribute["mechanism"] for attribute in drawn["attributes"]] == ["grr", "oue-z"]
    assert drawn["guarantee"]["per_report"]["whole"] == pytest.approx(1)


def test_people_see_what_noise_on_presence_costs(tmp_path: Path) -> None:
    asked = "eps: 1, presence_epsilon: 1, attributes: [{name: a, range: {last: 99}, mechanism: oue}]"
    path = written(tmp_path, f"{{id: s, start: 2026-01-01T00:00:00Z, period: 1d, {asked}}}")
    text = " ".join(shown(path, "--all", "--devices", "1000").split())
    assert "The same with presence_epsilon = 1" in text
    assert " 71 " in text and " 0.8717 " in text and "reports of period 1 2 6 0.60%" in text.replace("│", "")
    assert "useless-with-presence-noise" in text
    read = json.loads(shown(path, "--devices", "1000", "--json"))
    assert read["presence"]["attributes"]["a"]["largest"] == 71


def test_people_see_what_readers_of_results_learn_and_which_budget_keeps_a_figure(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2, devices: 6500,
        central: {target: 0.5, per: 1w}, attributes: [
        {name: gender, values: [a, b, c]}, {name: age, range: {last: 9}, mechanism: l-grr}]}""",
    )
    text = " ".join(shown(path, "--all").split())
    assert "delta 1e-08, 3,250 honest answers or more" in text and "none live, and none of weeks" in text
    assert "a week 0.756 (gender) 0.799 (gender) 0.787 (gender)" in text
    assert "at most 0.5 in 1w eps_1 1.47, which gives 0.499 (gender)" in text
    read = json.loads(shown(path, "--json"))
    assert list(read["central"]) == ["day", "week", "month", "year"]
    assert read["central"]["week"]["constant"]["by_attribute"] == {"gender": 0.756, "age": 0.58}
    assert (read["target"]["eps_1"], read["target"]["figure"]["epsilon"]) == (1.47, 0.499)


@pytest.mark.parametrize(
    ("last", "mechanism", "recommended"), [(60, "auto", True), (60, "threshold", False), (2, "auto", False)]
)
def test_thresholds_are_recommended_for_amounts_where_their_mean_has_the_smaller_error(
    tmp_path: Path, last: int, mechanism: str, recommended: bool
) -> None:
    path = written(
        tmp_path,
        f"""{{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 3, attributes: [
      {{name: minutes, range: {{last: {last}}}, role: amount, mechanism: {mechanism}}}]}}""",
    )
    found = json.loads(shown(path, "--json", "--devices", "10000"))
    (asked,) = found["attributes"]
    assert ("amount-by-threshold" in {one["code"] for one in found["cautions"]}) is recommended
    assert recommended is (asked["means"]["threshold"] < asked["means"][asked["mechanism"]])
    assert "threshold: " in shown(path, "--all")


PEOPLE = (4000, 130, 110, 3000, 30, 2500)
SHAPED = """
{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2, areas: map.geojson,
 attributes: [{name: town, role: area, values: [a, b, c, d, e, f, abroad]}]}
"""


def mapped(directory: Path, people: tuple[int, ...] | None) -> Path:
    """Six squares in a row; `f` is an island."""
    features = [square(name, place + (name == "f"), 0, 1) for place, name in enumerate("abcdef")]
    for feature, number in zip(features, people or (), strict=False):
        feature["properties"]["people"] = number
    (directory / "map.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return written(directory, SHAPED)


def test_a_plan_with_a_map_says_which_areas_are_precise_and_merges_neighbours_until_they_are(tmp_path: Path) -> None:
    path = mapped(tmp_path, PEOPLE)
    found = json.loads(shown(path, "--devices", "100000", "--json"))["areas"]
    scheme = Scheme(parse_survey(SHAPED))
    for one, people in zip(found["areas"], PEOPLE, strict=True):
        share = people / sum(PEOPLE)
        drawn = share * (1 - share) / 100_000  # of a larger population; the map is about those who report
        expected = (standard_error(scheme, scheme.question("town"), 100_000, share) ** 2 - drawn) ** 0.5 / share
        assert one["share"] == pytest.approx(share) and one["relative_error"] == pytest.approx(expected)
        assert one["precise"] == (expected <= 0.1)
    assert [one["areas"] for one in found["areas"] if not one["precise"]] == [["b"], ["c"], ["e"]]
    assert [one["areas"] for one in found["proposed"]] == [["a"], ["b", "c"], ["d", "e"], ["f"]]
    assert all(one["precise"] for one in found["proposed"])
    few = json.loads(shown(path, "--devices", "300", "--json"))["areas"]["proposed"]
    assert [one["areas"] for one in few] == [["a", "b", "c", "d", "e"], ["f"]] and not few[1]["precise"]
    text = shown(path, "--devices", "100000")
    assert "3 of 6 areas of town will be precise to 10 %" in text and "b + c" in text
    assert "if all have as many people" in " ".join(shown(mapped(tmp_path, None), "--devices", "100000").split())
