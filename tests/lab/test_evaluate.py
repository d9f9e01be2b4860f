"""`hearsay evaluate`: scenarios and tables in, figures and a page out, bad input refused with a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from protocols.errors import ScenarioError, SettingsError
from tests.helpers.browser import events_in
from tests.lab.calling import call, figures_of

EVALUATE = ("evaluate", "--runs", "2")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """200 people with codes that look like numbers, a blank now and then, and a name each."""
    rows = [f"0{i % 3},{'' if i % 5 else 'Yes, I do'},person {i},only" for i in range(200)]
    path = tmp_path / "people.csv"
    path.write_text(
        "\n".join(["Zip code,Agrees?,Name,Country", *(row.replace("Yes, I do", '"Yes, I do"') for row in rows)])
    )
    return path


def test_a_table_is_taken_as_it_is_found(table: Path) -> None:
    found = figures_of(*EVALUATE, "--csv", table, "--attributes", "Zip code,Agrees?", "--methods", "one-shot")
    assert found["attributes"] == {"Zip code": 3, "Agrees?": 2} and found["people"] == [200]
    assert {outcome["eps"] for outcome in found["outcomes"]} == {0.5, 1, 2, 4}
    assert all(np.isfinite(outcome["mse"]["raw"]["value"]) for outcome in found["outcomes"])


@pytest.mark.parametrize("column", ["Name", "Country"])
def test_a_column_that_is_no_question_is_refused(table: Path, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.populations.MOST_VALUES", 100)
    error = call(*EVALUATE, "--csv", table, "--attributes", f"Agrees?,{column}").exception
    assert isinstance(error, ScenarioError) and repr(column) in error.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("", "cannot be read"),
        ("a,b\n", "has no rows"),
        ("a,a\n1,2\n", "has the column 'a' twice"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "people.csv"
    if content is not None:
        path.write_text(content)
    error = call(*EVALUATE, "--csv", path).exception
    assert isinstance(error, ScenarioError) and said in error.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name,town\nann,a\nbob,+33612345678,unwell\n", "row 3 has 3 columns, not 2"),
        (b"name,town\nann,a\nbob\xff,+33612345678\n", "cannot be read as CSV"),
        (b"bob,+33612345678\nann,x\n", "has no attribute 'town'"),
    ],
)
def test_an_error_about_a_table_does_not_quote_its_rows(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    error = call(*EVALUATE, "--csv", path, "--attributes", "town").exception
    assert isinstance(error, ScenarioError) and said in error.message
    assert not any(word in str(error) for word in ("bob", "unwell", "3361"))


def test_everybody_once_is_the_population_of_the_papers() -> None:
    found = figures_of(*EVALUATE, "--once", "--methods", "smp[grr]", "--eps", "ln3")
    assert found["people"] == [88_935]
    assert found["outcomes"][0]["eps"] == pytest.approx(np.log(3))


def test_periods_are_lived_through_one_by_one() -> None:
    found = figures_of(
        *EVALUATE, "--scenario", "commuters", "--devices", "300", "--periods", "3", "--methods", "smp[l-osue]"
    )
    assert len(found["people"]) == 3


def test_published_terms_stand_beside_ours_where_they_differ(tmp_path: Path) -> None:
    page = tmp_path / "evaluation.html"
    options = ("--scenario", "telemetry", "--devices", "500", "--eps", "1", "--html", page)
    result = call(
        *EVALUATE,
        *options,
        "--methods",
        "smp[l-grr],smp[l-osue],smp[l-oue],rs+fd[grr]",
        "--published",
        "--alpha",
        "0.9",
    )
    assert result.exit_code == 0, result.output
    rows = [line.split()[:2] for line in result.stdout.splitlines() if "[" in line]
    assert rows[:6] == [
        ["smp[l-grr]", "exact"],
        ["smp[l-grr]", "published"],
        ["smp[l-osue]", "exact"],
        ["smp[l-oue]", "exact"],
        ["rs+fd[grr]", "tuple"],
        ["rs+fd[grr]", "published"],
    ]
    assert "choose eps_1 below" in result.stdout
    html = page.read_text()
    (told,) = events_in(html)
    assert {score["label"] for score in told["record"]["scores"]} >= {"smp[l-grr]", "smp[l-grr], published"}
    assert told["record"]["infeasible"][0]["infeasible"]
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="http', html)


def test_figures_are_not_lost_where_the_page_cannot_be_written(tmp_path: Path) -> None:
    result = call(*EVALUATE, "--scenario", "telemetry", "--devices", "100", "--methods", "smp[grr]", "--html", tmp_path)
    assert isinstance(result.exception, IsADirectoryError)
    assert "smp[grr]" in result.stdout


@pytest.mark.parametrize(
    "wrong", [("--eps", "0"), ("--eps", "many"), ("--eps", "nan"), ("--alpha", "1"), ("--corrections", "guess")]
)
def test_wrong_usage_is_named(wrong: tuple[str, str]) -> None:
    result = call(*EVALUATE, *wrong)
    assert result.exit_code == 2 and wrong[0] in result.output


def test_a_method_nobody_knows_is_refused() -> None:
    assert isinstance(call(*EVALUATE, "--methods", "l-grrr").exception, SettingsError)
