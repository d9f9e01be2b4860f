"""The averaging attack on places: without a memo it finds the place, with one it never comes nearer than the memo."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from audit.closed.places import averaged
from audit.computed import computed
from audit.measured.places import place_figures
from protocols.scheme import Scheme
from tests.audit.observing import observe
from tests.helpers.surveys import of_size, scheme_with

GRID = {"at": [47.0, 6.0], "cell": "100m", "columns": 60, "rows": 60}
NEAR, WIDE = {"level": 1.0986, "radius": "200m"}, {"level": 2.1972, "radius": "200m"}
DEVICES = 800


def scheme_of(**reaches: Any) -> Scheme:
    return scheme_with({"name": "place", "grid": GRID, **reaches})


def measured(scheme: Scheme, periods: int) -> float:
    values = {"place": np.full((periods, DEVICES), 30 * 60 + 30)}
    return [figure.measured or 0.0 for figure in place_figures(observe(scheme, values))][-1]


@pytest.mark.parametrize("reaches", [{"geo": NEAR}, {"geo_inf": WIDE}, {"geo_inf": WIDE, "geo": NEAR}])
def test_carried_out_it_reaches_its_closed_form(reaches: dict[str, Any]) -> None:
    scheme = scheme_of(**reaches)
    for periods in (1, 12):
        best = averaged(scheme.questions[0], periods, scheme.survey.longitudinal)
        assert measured(scheme, periods) == pytest.approx(best, rel=0.1)


def test_a_year_of_reports_without_a_memo_leaves_23_metres_and_with_one_never_less_than_the_memo() -> None:
    once, memo = scheme_of(geo=NEAR).questions[0], scheme_of(geo_inf=WIDE, geo=NEAR).questions[0]
    assert [round(averaged(once, t, memoised=False)) for t in (30, 365)] == [81, 23]
    one_memo = averaged(scheme_of(geo_inf=WIDE).questions[0], 1, memoised=True)
    assert averaged(memo, 365, memoised=True) > one_memo == averaged(memo, inf, memoised=True) > 210


def test_devices_that_forget_their_memos_are_found_by_it() -> None:
    """Failure would look like: fresh memos, and a figure as if there were none."""
    scheme = scheme_of(geo_inf=WIDE, geo=NEAR)

    def forgets(respondent: Any, question: Any, devices: Any, period: int, values: Any) -> Any:
        memo = respondent.memoise(question, devices + np.uint64(period * DEVICES), values)
        return respondent.report(question, devices, period, memo)

    values = {"place": np.full((12, DEVICES), 30 * 60 + 30)}
    *_, figure = place_figures(observe(scheme, values, forgets))
    assert figure.high is not None and figure.best is not None and figure.high < 0.6 * figure.best


def test_an_audit_of_places_beside_values_computes_all_attacks() -> None:
    scheme = scheme_with(
        {"name": "place", "grid": {**GRID, "columns": 8, "rows": 6}, "geo": NEAR, "geo_inf": WIDE},
        of_size(5),
        eps_inf=2,
        eps_1=1,
    )
    figures = computed(scheme, 1000, ("guess", "place", "which", "link", "epsilon", "forge"))
    assert {figure.attack for figure in figures} == {"guess", "place", "link", "epsilon", "forge"}
    assert not [figure for figure in figures if figure.attack in ("guess", "forge") and figure.target == "place"]
