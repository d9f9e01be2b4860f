"""`hearsay evaluate --label`: what a classifier learns, from a table of the user; bad tables are refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from protocols.errors import ScenarioError, SurveyError
from tests.helpers.browser import events_in
from tests.lab.calling import call, figures_of


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 people: town and height say something about income, the name and the country nothing."""
    draw = random.Random(7)
    lines = ["name,town,height,country,income"]
    for person in range(3_000):
        high = draw.random() < 0.3
        town = draw.choices(["Ashford", "Brook", "Cray"], [1, 2, 6] if high else [4, 3, 2])[0]
        height = "?" if person % 50 == 0 else f"{draw.gauss(180 if high else 170, 8):.1f}"
        lines.append(f"person {person},{town},{height},only,{'high' if high else 'low'}")
    path = tmp_path_factory.mktemp("label") / "people.csv"
    path.write_text("\n".join(lines))
    return path


def learnt(table: Path, *arguments: str) -> dict[str, Any]:
    return figures_of("evaluate", "--csv", table, "--label", "income", "--runs", "2", "--eps", "6", *arguments)


def test_crosses_and_records_stand_beside_no_privacy_and_the_largest_class(table: Path) -> None:
    found = learnt(table, "--methods", "one-shot", "--sensitive", "town")
    assert found["attributes"] == {"town": 3, "height": 9}, "numbers are cut; what is unknown is a value of its own"
    assert found["binned"] == ["height"] and found["left_out"] == ["name", "country"]
    assert (found["people"], found["tried_on"]) == (2_100, 900)
    by_source = {one["source"]: one for one in found["learnt"]}
    assert list(by_source) == ["majority class", "no privacy", "crosses", "synthetic records"]
    assert by_source["majority class"]["auc"]["value"] == 0.5
    assert 0.5 < by_source["crosses"]["auc"]["value"] < by_source["no privacy"]["auc"]["value"] + 0.02
    assert by_source["crosses"]["reveals"] == pytest.approx(6, rel=1e-3)
    assert by_source["no privacy"]["parity_gap"]["value"] > 0.1
    assert by_source["majority class"]["parity_gap"]["value"] == 0


def test_the_same_seed_gives_the_same_figures_and_memos_reveal_less(table: Path) -> None:
    assert learnt(table, "--seed", "4") == learnt(table, "--seed", "4")
    assert learnt(table)["learnt"][2]["reveals"] == pytest.approx(3, rel=1e-3), "eps_1 is half of eps_inf"


def test_a_terminal_shows_a_table_and_a_page_is_written(table: Path, tmp_path: Path) -> None:
    page = tmp_path / "learning.html"
    options = ("--sensitive", "town", "--runs", "2", "--eps", "1,6", "--html", page)
    result = call("evaluate", "--csv", table, "--label", "income", *options)
    assert result.exit_code == 0, result.output
    assert "majority class" in result.stdout and "opportunity" in result.stdout
    assert max(map(len, result.stdout.splitlines()[2:-1])) <= 80
    (told,) = events_in(page.read_text())
    assert [one["eps"] for one in told["record"]["learnt"]] == [None, None, 1, 1, 6, 6]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--label", "name"), "label 'name' has 3,000 different"),
        (("--label", "country"), "label 'country' has 1 different"),
        (("--label", "nothing"), "has no attribute 'nothing'"),
        (("--label", "income", "--sensitive", "nothing"), "has no attribute 'nothing'"),
        (("--label", "income", "--attributes", "country"), "column 'country' has 1 different"),
    ],
)
def test_columns_that_cannot_be_learnt_are_refused(table: Path, arguments: tuple[str, ...], said: str) -> None:
    error = call("evaluate", "--csv", table, *arguments).exception
    assert isinstance(error, ScenarioError) and said in error.message


@pytest.mark.parametrize(
    "wrong", [("--label", "income"), ("--sensitive", "town"), ("--label", "income", "--csv", "x.csv", "--test", "1")]
)
def test_wrong_usage_is_named(wrong: tuple[str, ...]) -> None:
    assert call("evaluate", *wrong).exit_code == 2


def test_a_budget_that_no_survey_may_have_is_refused(table: Path) -> None:
    error = call("evaluate", "--csv", table, "--label", "income", "--eps", "100").exception
    assert isinstance(error, SurveyError) and "eps_inf" in error.message
