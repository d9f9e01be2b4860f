"""Methods compared on places: errors in metres and of areas, from a scenario and from a table of positions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

from hearsay.terminal.console import Lines
from lab.evaluation.places import moved, place_errors
from protocols.errors import ScenarioError
from protocols.survey import Attribute, Grid
from tests.helpers.browser import events_in
from tests.lab.calling import call as call_command
from tests.lab.calling import figures_of

SURVEY = """
{id: s, start: 2026-01-01T00:00:00Z, period: 1h, attributes: [{name: place,
 grid: {at: [47.2, 6.0], cell: 500m, columns: 8, rows: 6}, geo: {level: 1, radius: 100m},
 geo_inf: {level: 2, radius: 100m}, groups: {west: [x0y0, x1y0, x0y1, x1y1], middle: [x3y2, x4y2, x3y3, x4y3]}}]}
"""


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.yaml"
    path.write_text(SURVEY)
    return path


def call(survey: Path, options: str) -> Result:
    return call_command(f"evaluate --runs 2 --places {survey} {options}")


def outcomes_of(survey: Path, options: str) -> dict[str, Any]:
    found = figures_of(f"evaluate --runs 2 --places {survey} {options}")
    return {outcome["method"]: outcome for outcome in found["outcomes"]}


def test_progress_has_the_dates_of_the_survey(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lines, "EVERY_SECONDS", 0.0)
    done = call(survey, "--methods smp[l-grr] --devices 100 --periods 2 --eps 2")
    assert "simulating Thu 2026-01-01 01:00: 1 of 2" in done.stderr, done.exception


def test_what_people_are_moved_by_is_the_distance_of_what_was_moved() -> None:
    grid = Grid(at=(47, 6), cell=100, columns=9, rows=7)
    even = np.full(63, 1 / 63)
    one, other = even.copy(), even.copy()
    one[10] += 0.5
    other[10 + 3 * 9] += 0.2  # three rows to the north
    other[10 + 4] += 0.3  # four columns to the east
    assert moved(one, other, grid) == pytest.approx(100 * (0.2 * 3 + 0.3 * 4))
    assert moved(other, one, grid) == pytest.approx(moved(one, other, grid))


def test_on_a_large_grid_blocks_of_cells_are_moved() -> None:
    """12,000 cells are 1,000 blocks and fewer: a distance is found to within the side of a block."""
    grid = Grid(at=(47, 6), cell=10, columns=120, rows=100)
    one, other = np.zeros(12_000), np.zeros(12_000)
    one[5 * 120 + 10], other[5 * 120 + 90] = 1, 1
    assert moved(one, other, grid) == pytest.approx(800, abs=40)


def test_errors_of_areas_are_those_of_their_sums() -> None:
    groups = {"south": ("x0y0", "x1y0"), "east": ("x1y0", "x1y1")}
    grid, reach = Grid(at=(47, 6), cell=500, columns=2, rows=2), {"level": 1, "radius": 400}
    place = Attribute.model_validate({"name": "place", "grid": grid, "geo": reach, "groups": groups})
    metres, areas = place_errors(place, np.array([0.4, 0.3, 0.2, 0.1]), np.full(4, 0.25))
    assert areas == pytest.approx(np.sqrt((0.2**2 + 0.1**2) / 2)) and metres > 0


def test_protection_by_distance_is_nearer_than_any_other_at_the_same_figure(survey: Path, tmp_path: Path) -> None:
    """And it says that it reveals more: the loss between the two ends of the map. Errors of areas may be larger."""
    page = tmp_path / "page.html"
    found = outcomes_of(survey, f"--methods l-geo-grid,smp[l-grr],smp[oue] --devices 4000 --eps 2 --html {page}")
    assert set(found) == {"smp[l-geo-grid]", "smp[l-grr]", "smp[oue]"}
    geo, grr = found["smp[l-geo-grid]"], found["smp[l-grr]"]
    metres = {name: outcome["places"]["place"]["metres"]["value"] for name, outcome in found.items()}
    assert min(metres, key=metres.__getitem__) == "smp[l-geo-grid]"
    assert metres["smp[l-geo-grid]"] < 1000 and geo["expected_mse"] is None and grr["expected_mse"] > 0
    assert geo["per_report"]["whole"] > 5 > grr["per_report"]["whole"]
    (event,) = [event for event in events_in(page.read_text()) if event["kind"] == "evaluation"]
    assert event["record"]["scores"][0]["places"]["place"]["metres"]["value"] > 0


@pytest.mark.long(part="statistics")
def test_the_table_shows_metres_and_what_budgets_are_for(survey: Path) -> None:
    shown = call(survey, "--methods smp[geo-grid] --devices 500 --eps 1")
    assert shown.exit_code == 0, shown.output
    assert "metres" in shown.output and "100 m (place)" in shown.output and "theory" not in shown.output


def test_positions_of_a_table_are_taken_as_replay_takes_them(survey: Path, tmp_path: Path) -> None:
    random, table = np.random.default_rng(1), tmp_path / "people.csv"
    latitude, longitude = random.uniform(47.201, 47.22, 800), random.uniform(6.001, 6.04, 800)
    rows = [f"{a:.6f},{b:.6f}" for a, b in zip(latitude, longitude, strict=True)]
    table.write_text("\n".join(["lat,lon", *rows]))
    positions = f"--csv {table} --position lat,lon=place --methods smp[geo-grid]"
    for outcome in outcomes_of(survey, f"{positions} --eps 1").values():
        assert outcome["places"]["place"]["metres"]["value"] < 1500
    table.write_text("\n".join(["lat,lon", *rows, "50.0,6.0"]))
    error = call(survey, positions).exception
    assert isinstance(error, ScenarioError) and "1 of 801 rows" in error.message


def test_inside_an_area_only_what_stays_inside_is_compared_and_other_positions_are_refused(
    survey: Path, tmp_path: Path
) -> None:
    inside = "rows: 6, inside: [x0-4y0, x0-4y1, x0-7y2, x0-7y3, x3-7y4, x3-7y5]}"
    survey.write_text(SURVEY.replace("rows: 6}", inside).replace("100m", "400m"))
    found = outcomes_of(survey, "--methods geo-tight,geo-grid,smp[grr] --devices 3000 --eps 2")
    assert "only some of its cells are inside" in found["smp[geo-grid]"]["infeasible"]
    tight, grr = (found[f"smp[{name}]"]["places"]["place"] for name in ("geo-tight", "grr"))
    assert all(0 < tight[error]["value"] < grr[error]["value"] for error in ("metres", "areas"))
    table = tmp_path / "people.csv"
    table.write_text("lat,lon\n47.201,6.001\n47.201,6.05\n")  # in x0y0, and in x7y0
    error = call(survey, f"--csv {table} --position lat,lon=place").exception
    assert isinstance(error, ScenarioError) and "1 of 2 rows" in error.message


def test_what_does_not_go_with_places_is_refused(survey: Path, tmp_path: Path) -> None:
    assert "belong to --places" in call(survey, "--metres").output.replace("\n", " ")
    assert "neither" in call(survey, "--crosses a*b").output
    other = tmp_path / "other.yaml"
    other.write_text(
        "{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: [{name: a, values: [x, y]}]}"
    )
    error = call(other, "").exception
    assert isinstance(error, ScenarioError) and "no places" in error.message
