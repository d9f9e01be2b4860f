"""Methods compared on places: errors in metres and of areas, from a scenario and from a table of positions."""

from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

from lab.attacks.forging import forged_figures
from lab.attacks.linking import link_trials
from lab.attacks.places import place_figures
from lab.attacks.trials import Trials
from lab.audit.closed.places import averaged, blind
from lab.audit.computed import FORGERS
from lab.evaluation.places import Place, moved
from protocols.errors import ScenarioError
from protocols.privacy import first_guess
from protocols.scheme import Scheme
from protocols.survey import Grid
from tests.helpers.browser import events_in
from tests.helpers.surveys import scheme_with
from tests.lab.calling import call as call_command
from tests.lab.calling import figures_of
from tests.lab.observing import Answer, honest, observe

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
    south, east = [True, True, False, False], [False, True, False, True]
    place = Place(Grid(at=(47, 6), cell=500, columns=2, rows=2), 400, np.array([south, east]))
    metres, areas = place.errors(np.array([0.4, 0.3, 0.2, 0.1]), np.full(4, 0.25))
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


GRID = {"at": [47.0, 6.0], "cell": "100m", "columns": 60, "rows": 60}
SMALL = {"at": [47.0, 6.0], "cell": "200m", "columns": 20, "rows": 15}
SOME = {**SMALL, "inside": [f"x{row // 5}-{19 - row // 4}y{row}" for row in range(15)]}
# Positions 200 m apart can be in cells of 100 m that are 361 m apart: a cell side costs ln 3 / 2.
NEAR, WIDE = {"level": 1.9805, "radius": "200m"}, {"level": 3.961, "radius": "200m"}
REACHES = [{"geo": NEAR}, {"geo_inf": WIDE}, {"geo_inf": WIDE, "geo": NEAR}]
DEVICES = 800


def scheme_of(**reaches: Any) -> Scheme:
    return scheme_with({"name": "place", "grid": GRID, **reaches})


def measured(scheme: Scheme, periods: int) -> float:
    values = {"place": np.full((periods, DEVICES), 30 * 60 + 30)}
    return [figure.measured or 0.0 for figure in place_figures(observe(scheme, values))][-1]


@pytest.mark.parametrize("reaches", REACHES)
def test_carried_out_it_reaches_its_closed_form(reaches: dict[str, Any]) -> None:
    scheme = scheme_of(**reaches)
    for periods in (1, 12):
        best = averaged(scheme.questions[0], periods, scheme.survey.longitudinal)
        assert measured(scheme, periods) == pytest.approx(best, rel=0.1)


def test_a_year_of_reports_without_a_memo_leaves_23_metres_and_with_one_never_less_than_the_memo() -> None:
    once, only_memo, memo = (scheme_of(**reaches).questions[0] for reaches in REACHES)
    assert [round(averaged(once, t, memoised=False)) for t in (30, 365)] == [81, 23]
    one_memo = averaged(only_memo, 1, memoised=True)
    assert averaged(memo, 365, memoised=True) > one_memo == averaged(memo, inf, memoised=True) > 210


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("reaches", REACHES)
def test_inside_an_area_it_reaches_the_mean_over_all_its_cells(reaches: dict[str, Any]) -> None:
    scheme = scheme_with({"name": "place", "grid": SOME, **reaches})
    (question,) = scheme.questions
    values = {"place": np.tile(np.resize(np.arange(question.k), 4 * question.k), (12, 1))}
    figures = list(place_figures(observe(scheme, values)))
    assert [(figure.reports, figure.trials) for figure in figures] == [(1, 4 * question.k), (12, 4 * question.k)]
    for figure in figures:
        best = averaged(question, figure.reports, scheme.survey.longitudinal)
        assert figure.measured == pytest.approx(best, rel=0.05) and best < blind(question)


def test_devices_that_forget_their_memos_are_found_by_it() -> None:
    """Failure would look like: fresh memos, and a figure as if there were none."""
    scheme = scheme_of(geo_inf=WIDE, geo=NEAR)

    def forgets(respondent: Any, question: Any, devices: Any, period: int, values: Any) -> Any:
        memo = respondent.memoise(question, devices + np.uint64(period * DEVICES), values)
        return respondent.report(question, devices, period, memo)

    values = {"place": np.full((12, DEVICES), 30 * 60 + 30)}
    *_, figure = place_figures(observe(scheme, values, forgets))
    assert figure.high is not None and figure.best is not None and figure.high < 0.6 * figure.best


def linked(scheme: Scheme, answer: Answer = honest, people: int = 4000) -> tuple[Trials, float]:
    """How often a device's earlier report is found, values being spread evenly, and how often that is computed."""
    (question,) = scheme.questions
    values = {question.name: np.tile(np.random.default_rng(3).integers(question.k, size=people), (2, 1))}
    trials, crowd = link_trials(observe(scheme, values, answer), [question])
    return trials, first_guess([question], crowd, scheme.survey.longitudinal)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("grid", [SMALL, SOME], ids=["whole", "inside"])
@pytest.mark.parametrize("reaches", REACHES)
def test_devices_are_recognised_as_often_as_computed(reaches: dict[str, Any], grid: dict[str, Any]) -> None:
    trials, best = linked(scheme_with({"name": "place", "grid": grid, **reaches}))
    low, high = trials.interval(0.001)
    assert low <= best <= high


def test_on_a_grid_of_very_many_cells_scores_by_distance_reach_what_is_computed() -> None:
    """The closed form has no border there: it is right to within a third."""
    trials, best = linked(scheme_of(geo_inf=WIDE, geo=NEAR))
    assert trials.share == pytest.approx(best, rel=0.35) and trials.share > 20 / 4000


def test_devices_whose_reports_have_no_noise_of_their_own_are_recognised_more_often() -> None:
    """Failure would look like: the memo is sent as it is, and the figure says that reports are fresh."""

    def sends_its_memo(respondent: Any, question: Any, devices: Any, period: int, values: Any) -> Any:
        return respondent.memoise(question, devices, values)

    trials, best = linked(scheme_with({"name": "place", "grid": SMALL, "geo_inf": WIDE, "geo": NEAR}), sends_its_memo)
    assert trials.interval(0.001)[0] > 2 * best


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("grid", [SMALL, SOME], ids=["whole", "inside"])
def test_forged_reports_move_a_place_as_far_as_computed(grid: dict[str, Any]) -> None:
    """Naming the target moves more than the forgers' share: no honest place makes reports that are so near together."""
    scheme = scheme_with({"name": "place", "grid": grid, "geo": NEAR})
    (question,), found = scheme.questions, np.zeros((3, len(FORGERS), 2))
    for population in range(len(found)):  # how many steps are taken depends on the draws, and the peak on the steps
        values = {"place": np.random.default_rng(population).integers(question.k, size=(1, 20_000))}
        figures = list(forged_figures(observe(scheme, values)))
        found[population] = [(figure.measured, figure.best) for figure in figures]
    moved = dict(zip(FORGERS, found.mean(axis=0).tolist(), strict=True))
    for measured, expected in moved.values():
        assert measured == pytest.approx(expected, abs=0.003, rel=0.5)
    assert moved["best"][0] > 0.01 > moved["lying"][0] and abs(moved["random"][0]) < 0.002
