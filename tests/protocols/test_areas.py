"""Places inside an area of any shape: the integers keep the promise exactly, and surveys say which cells are inside."""

import json
from decimal import Decimal, localcontext
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest

from protocols.errors import SurveyError
from protocols.mechanisms.catalogue import build_for_places
from protocols.mechanisms.mechanism import Budget
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.displacement import PlanarRound, rate_after
from protocols.mechanisms.places.fitting import composed, is_tight, weighed
from protocols.mechanisms.places.law import ANYWHERE
from protocols.mechanisms.places.rounds import PlaceRound
from protocols.planning import plan
from protocols.privacy import in_words
from protocols.scheme import Scheme
from protocols.survey_text import format_survey, parse_survey, with_area_groups
from tests.helpers.references import settled
from tests.helpers.surveys import scheme_with
from tests.protocols.test_places import whole_channel

HOOK = Area(6, 5, (0, 1, 2, 6, 12, 18, 19, 25, 26, 27, 28))  # a bay between two arms
RUNS = ["x0-2y0", "x0y1", "x0y2", "x0-1y3", "x1-4y4"]
GRID = {"at": [47.0, 6.0], "cell": "500m", "columns": 6, "rows": 5, "inside": RUNS}
NEAR, WIDE = {"level": 1.1, "radius": "400m"}, {"level": 2.2, "radius": "400m"}


def place(**more: Any) -> dict[str, Any]:
    return {"name": "place", "grid": GRID, **more}


def integers(noise: PlaceRound) -> list[list[int]]:
    """The chances of reports in units of 2^-64, from the integers that a device draws with."""
    if isinstance(noise, PlanarRound):
        return whole_channel(noise.columns, noise.rows, noise.rate)
    return [[high - low for low, high in pairwise([0, *map(int, row), 1 << 64])] for row in noise.table]


def share_of_budget(channel: list[list[int]], area: Area, rate: float) -> Decimal:
    """The largest loss between two cells, as a share of what their distance allows; exactly."""
    used = Decimal(0)
    with localcontext() as context:
        context.prec = 50
        for one, other in permutations(range(area.k), 2):
            allowed = Decimal(rate) * Decimal(int(area.squares[one, other])).sqrt()
            ratio = max(Decimal(a) / b for a, b in zip(channel[one], channel[other], strict=True))
            used = max(used, ratio.ln() / allowed)
    return used


@pytest.mark.parametrize("area", [HOOK, Area(4, 4), None])
@pytest.mark.parametrize(("rate", "tight"), [(0.05, False), (0.3, False), (1.0, True), (7.0, True)])
def test_the_integers_keep_the_rate_between_any_two_cells_exactly(area: Area | None, rate: float, tight: bool) -> None:
    noise: PlaceRound = weighed(area, rate) if area else PlanarRound(5, 4, rate)
    channel, within = integers(noise), area or Area(5, 4)
    assert all(sum(row) == 1 << 64 and min(row) >= ANYWHERE for row in channel)
    used = share_of_budget(channel, within, rate)
    assert Decimal("0.999") < used <= 1, "also the exponential mechanism: its slope is calibrated"
    assert noise.matrix == pytest.approx(np.array(channel, dtype=float) / 2.0**64, abs=1e-15)
    if area == Area(4, 4):
        assert is_tight(noise) == tight


@pytest.mark.parametrize(("inf", "one"), [(1.4, 0.7), (0.6, 0.3)])
@pytest.mark.parametrize("name", ["geo-grid", "geo-tight"])
def test_a_second_round_is_the_largest_that_keeps_the_budget_of_a_report(name: str, inf: float, one: float) -> None:
    """The combined loss is enumerated in whole numbers; a slightly larger second round would exceed the budget."""
    area = Area(4, 3) if name == "geo-grid" else HOOK
    mechanism = build_for_places(name, area, Budget(inf, one))
    first, second = mechanism.first, mechanism.second
    assert isinstance(first, PlaceRound) and isinstance(second, PlaceRound)
    rounds = [integers(noise) for noise in (first, second)]
    both = (np.array(rounds[0], dtype=object) @ np.array(rounds[1], dtype=object)).tolist()  # Python's integers
    used = share_of_budget(both, area, one)
    assert Decimal("0.98") < used <= 1
    rate = second.rate * 1.02
    more = PlanarRound(4, 3, rate) if name == "geo-grid" else weighed(area, rate)
    assert composed(first, more) > one
    assert rate_after(first, second, 1) == one and rate_after(first, second, 10) <= inf


@pytest.mark.parametrize("name", ["geo-grid", "geo-tight"])
def test_linked_reports_of_any_two_histories_stay_within_what_is_said(name: str) -> None:
    """All histories of two reports: places that never change, and those that move between neighbours.

    Neighbours are told apart by more than two reports of neighbours would suggest: whether both reports come from one
    memo shows. What is said of any two histories therefore does not depend on how far apart they are.
    """
    grid = {**GRID, "columns": 4, "rows": 2}
    grid.pop("inside")
    scheme = scheme_with({"name": "place", "grid": grid, "geo": NEAR, "geo_inf": WIDE, "mechanism": name})
    mechanism = scheme.questions[0].mechanism
    first, second = mechanism.first, mechanism.second
    assert isinstance(first, PlaceRound) and isinstance(second, PlaceRound)
    one_memo = np.einsum("xm,mi,mj->xij", first.matrix, second.matrix, second.matrix)
    alone = first.matrix @ second.matrix
    cells = range(first.cells)
    seen = {(a, b): one_memo[a] if a == b else np.outer(alone[a], alone[b]) for a, b in product(cells, cells)}
    constant = max(
        np.log(seen[a, a] / seen[b, b]).max() / first.area.distances[a, b] for a, b in permutations(cells, 2)
    )
    assert constant <= rate_after(first, second, 2)
    worst = max(np.log(one / other).max() for one, other in product(seen.values(), seen.values()))
    near = scheme.guarantees.of_places((2,))["place"][0]
    assert worst <= near.any[2] == pytest.approx(scheme.guarantees.any(2).whole)
    neighbours = np.abs(np.log(seen[0, 0] / seen[0, 1])).max()
    assert neighbours > rate_after(first, second, 1)


def test_a_plan_says_in_metres_what_is_kept_and_which_mechanism_it_is() -> None:
    tight, loose = (plan(scheme_with(place(geo={"level": level, "radius": "400m"}))) for level in (5.5, 1))
    assert tight.attributes[0].mechanism == loose.attributes[0].mechanism == "geo-tight"
    assert "the tight mechanism exists" in tight.attributes[0].why
    assert "does not exist where a cell side costs 0.22" in loose.attributes[0].why
    assert "exponential mechanism" in loose.attributes[0].why and "exponential at" in loose.attributes[0].detail
    _, near, *_, far = tight.guarantee.places["place"]
    assert "two positions 400 m apart: 5.5" in in_words((near,)) and near.any[10] == pytest.approx(55)
    assert far.metres == pytest.approx(500 * 32**0.5, abs=0.1), "the widest two cells inside"
    moved = tight.attributes[0].displacement
    assert moved is not None and 0 < moved.mean < far.metres


def test_cells_inside_are_terms_and_are_read_again() -> None:
    scheme = scheme_with(place(geo=NEAR, geo_inf=WIDE))
    attribute = scheme.survey.attributes[0]
    assert attribute.k == 11 and attribute.values[:4] == ("x0y0", "x1y0", "x2y0", "x0y1")
    again = parse_survey(format_survey(scheme.survey))
    assert again == scheme.survey and Scheme(again).fingerprint == scheme.fingerprint
    other = scheme_with(place(geo=NEAR, geo_inf=WIDE, grid={**GRID, "inside": RUNS[:-1]}))
    assert other.fingerprint != scheme.fingerprint
    grid = attribute.grid
    assert grid is not None
    x, y = np.array([2700.0, 2700.0, -9.0]), np.array([2400.0, 900.0, 300.0])
    assert [attribute.values[cell] for cell in grid.cells_at(x, y)] == ["x4y4", "x2y0", "x0y0"]
    assert grid.outside(x, y).tolist() == [1, 1, 1] and settled(grid, 600.0, 100.0, 0) == 0


def test_the_areas_of_a_file_can_be_what_is_inside() -> None:
    ring = [[0, 0], [1499, 0], [1499, 499], [499, 499], [499, 999], [0, 999], [0, 0]]
    feature = {"properties": {"name": "south"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    grid = {"crs": "own", "cell": "500m", "columns": 6, "rows": 5, "inside": "areas"}
    text = {"id": "s", "start": "2026-01-01T00:00:00Z", "period": "1d"}
    asked = {"name": "place", "grid": grid, "areas": "a.geojson", "geo": NEAR}
    written, beside = json.dumps({**text, "attributes": [asked]}), json.dumps({"features": [feature]})
    with pytest.raises(SurveyError, match="a file that was not read"):
        parse_survey(written)
    survey = parse_survey(written, read_beside={"a.geojson": beside}.__getitem__)
    found = with_area_groups(survey, {"place": beside}).attributes[0]
    assert found.values == ("x0y0", "x1y0", "x2y0", "x0y1") == found.groups["south"]
    assert found.grid is not None and found.grid.inside == ("x0-2y0", "x0y1")
