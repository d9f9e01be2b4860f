"""Attacks on places: averaging, recognising a device by two reports, and forged reports, each against its figure."""

from math import inf
from typing import Any

import numpy as np
import pytest

from lab.attacks.forging import FORGERS, forged_figures
from lab.attacks.linking import link_trials
from lab.attacks.places import averaged, blind, place_figures
from lab.attacks.report import Trials
from protocols.privacy import first_guess
from protocols.scheme import Scheme
from tests.helpers.surveys import scheme_with
from tests.lab.observing import Answer, honest, observe

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
        return respondent.report(question, devices, period, respondent.listed(question, memo))

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
