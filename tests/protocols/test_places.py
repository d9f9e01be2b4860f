"""Places on grids and in areas: integers keep the promise exactly, between any two positions, and plans say it."""

import json
from decimal import Decimal, localcontext
from functools import cache
from itertools import pairwise, permutations, product
from math import sqrt
from typing import Any

import numpy as np
import pytest

from hearsay_device.attributes import KEPT
from hearsay_device.attributes import Grid as DeviceGrid
from lab.seeded_keyrings import seeded_keyring
from protocols.arrays import Floats, Mask
from protocols.errors import SettingsError, SurveyError
from protocols.mechanisms.builders.places import composed
from protocols.mechanisms.catalogue import build
from protocols.mechanisms.mechanism import Budget
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.displacement import PlanarRound, cuts, rate_after
from protocols.mechanisms.places.rounds import ANYWHERE, PlaceRound, PlanarChannel
from protocols.mechanisms.places.weighing import weighed
from protocols.planning import plan
from protocols.privacy import in_words
from protocols.scheme import Scheme
from protocols.survey.grid import Grid
from protocols.survey_text import format_survey, parse_survey, with_area_groups
from tests.helpers.references import settled
from tests.helpers.surveys import of_size, scheme_with

GRID = {"at": [47.0, 6.0], "cell": "500m", "columns": 9, "rows": 7}
NEAR, WIDE = {"level": 1.1, "radius": "400m"}, {"level": 2.2, "radius": "400m"}


def place(**more: Any) -> dict[str, Any]:
    return {"name": "place", "grid": GRID, **more}


def whole_channel(columns: int, rows: int, rate: float) -> list[list[int]]:
    """The chances of a device's reports in units of 2^-64, from the integers that it draws with."""
    ends = [0, *map(int, cuts(columns, rows, rate))]
    found = [[ANYWHERE] * (columns * rows) for _ in range(columns * rows)]
    for cell, row in enumerate(found):
        for drawn in range(len(ends) - 1):
            up, across = divmod(drawn, 2 * columns - 1)
            y = min(max(cell // columns + up - (rows - 1), 0), rows - 1)
            x = min(max(cell % columns + across - (columns - 1), 0), columns - 1)
            row[y * columns + x] += ends[drawn + 1] - ends[drawn]
    return found


def test_a_channel_of_two_rounds_and_its_transpose_are_those_of_its_matrix() -> None:
    channel, random = PlanarChannel((PlanarRound(5, 4, 0.8), PlanarRound(5, 4, 0.4))), np.random.default_rng(1)
    shares, votes = random.dirichlet(np.ones(20), size=3), random.random((3, 20))
    assert channel.support(shares) == pytest.approx(shares @ channel.matrix, abs=1e-12)
    assert channel.back(votes) == pytest.approx(votes @ channel.matrix.T, abs=1e-12)


@pytest.mark.parametrize("budget", [Budget(0.9), Budget(1.4, 0.7)])
@pytest.mark.parametrize(("name", "area"), [("geo-grid", Area(5, 4)), ("geo-tight", Area(4, 4, (0, 1, 4, 8, 9, 13)))])
def test_devices_draw_from_the_channel(name: str, area: Area, budget: Budget) -> None:
    """Also a single one: few rows are drawn by other code than many."""
    mechanism = build(name, area, budget)
    channel = mechanism.channel()
    assert isinstance(channel, PlanarChannel)
    for cell in (0, area.k // 2, area.k - 1):
        devices = np.arange(20_000, dtype=np.uint64)
        keyring = seeded_keyring(cell)
        memo = mechanism.memoise(np.full(len(devices), cell), keyring.draws(("memo",), devices))
        drawn = mechanism.report(memo, keyring.draws(("report",), devices))
        expected = channel.matrix[cell] * len(devices)
        assert (((np.bincount(drawn, minlength=area.k) - expected) ** 2) / expected)[expected > 5].sum() < 60
        alone = mechanism.memoise(np.array([cell]), keyring.draws(("memo",), devices[7:8]))
        assert alone[0] == memo[7]


def test_guarantees_are_said_in_metres_for_every_relation() -> None:
    promise = scheme_with(place(geo=NEAR, geo_inf=WIDE)).guarantees
    touching, near, counted, double, far = promise.of_places()["place"]
    assert [each.metres for each in (touching, near, counted, double, far)] == [0, 400, 500, 800, 5000]
    assert (near.per_report, near.for_ever) == (pytest.approx(1.1), pytest.approx(2.2))
    assert touching.per_report == pytest.approx(1.1 / 2), "one step each way, at 400 m two"
    assert double.per_report == pytest.approx(1.1 * sqrt(13 / 8)), "three steps and two"
    assert near.any == far.any and near.protected and far.per_report == pytest.approx(1.1 * sqrt(100 / 8))
    assert near.any == {t: pytest.approx(promise.any(t).whole) for t in (10, 100)}
    assert "two positions 0 m apart: 0.55; 400 m apart: 1.1" in in_words(promise.of_places()["place"])
    assert promise.per_report.whole == pytest.approx(far.per_report)
    assert promise.for_ever.whole == pytest.approx(far.for_ever or 0)
    once = scheme_with(place(geo=NEAR)).guarantees.of_places()["place"][1]
    assert once.for_ever is None and once.any[10] == pytest.approx(11)
    memo = scheme_with(place(geo_inf=NEAR)).guarantees.of_places()["place"][1]
    assert memo.for_ever == pytest.approx(1.1) and memo.any[10] is None


def test_a_plan_says_how_far_reports_are_from_the_place() -> None:
    """Mean 2 / eps, and E r^2 = 6 / eps^2, where cells are small: at ln 3 in 200 m 364 m, and 95 % within 864 m.

    Cells of 25 m can be 250 m apart where positions are 200 m apart (10 and 0 steps, 9 and 4, ...), so it is more.
    """
    fine = {"at": [47, 6], "cell": "25m", "columns": 160, "rows": 160}
    drawn = plan(scheme_with({"name": "place", "grid": fine, "geo": {"level": 1.0986, "radius": "200m"}}))
    moved = drawn.attributes[0].displacement
    assert moved is not None and moved.memo is None
    more = Area(160, 160).apart(8) / 8
    assert 1.2 < more < 1 + 2 * sqrt(2) * 0.75 / 8, "the distance and twice 0.75 sides each way, at most"
    assert (moved.mean, moved.median, moved.most) == pytest.approx((364 * more, 306 * more, 864 * more), rel=0.02)
    assert "10 km" not in drawn.guarantee.declared and "1.0986 within 200 m" in drawn.guarantee.declared
    assert any("protects nearness" in caution.text for caution in drawn.cautions)


def test_places_beside_another_attribute_keep_their_own_budgets() -> None:
    scheme = scheme_with(place(geo=NEAR, geo_inf=WIDE), of_size(5), eps_inf=2, eps_1=1)
    assert [question.label for question in scheme.questions] == ["geo-grid", "l-grr"]
    assert scheme.questions[0].budget == Budget(2.2 / sqrt(8), 1.1 / sqrt(8))


def test_a_plan_divides_what_places_leave_among_the_other_questions() -> None:
    """Failure would look like: a plan of places beside two attributes ends with an error, or proposes more than all."""
    scheme = scheme_with(place(geo=NEAR, share=0.4), of_size(5, "b"), of_size(2, "c"), eps=1)
    shares = plan(scheme, devices=10_000, error=0.02, wanted={"c": 0.01}).shares
    assert shares is not None and [one.name for one in shares.questions] == ["b", "c"]
    assert sum(one.proposed for one in shares.questions) == pytest.approx(0.6)
    for one in shares.questions:
        assert one.error * sqrt(one.share / one.proposed) == pytest.approx(one.proposed_error)
        assert one.proposed_error * sqrt(10_000 / shares.devices_needed) == pytest.approx(one.wanted, rel=1e-3)
    with pytest.raises(SettingsError, match="has no formula"):
        plan(scheme, wanted={"place": 0.01})


HOOK = Area(6, 5, (0, 1, 2, 6, 12, 18, 19, 25, 26, 27, 28))  # a bay between two arms
RUNS = ["x0-2y0", "x0y1", "x0y2", "x0-1y3", "x1-4y4"]
PART = {"at": [47.0, 6.0], "cell": "500m", "columns": 6, "rows": 5, "inside": RUNS}


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
        assert noise.tight == tight


@pytest.mark.parametrize(("inf", "one"), [(1.4, 0.7), (0.6, 0.3)])
@pytest.mark.parametrize("name", ["geo-grid", "geo-tight"])
def test_a_second_round_is_the_largest_that_keeps_the_budget_of_a_report(name: str, inf: float, one: float) -> None:
    """The combined loss is enumerated in whole numbers; a slightly larger second round would exceed the budget."""
    area = Area(4, 3) if name == "geo-grid" else HOOK
    mechanism = build(name, area, Budget(inf, one))
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
    scheme = scheme_with(place(grid={**GRID, "columns": 4, "rows": 2}, geo=NEAR, geo_inf=WIDE, mechanism=name))
    mechanism = scheme.questions[0].mechanism
    first, second = mechanism.first, mechanism.second
    assert isinstance(first, PlaceRound) and isinstance(second, PlaceRound)
    one_memo = np.einsum("xm,mi,mj->xij", first.matrix, second.matrix, second.matrix)
    alone = first.matrix @ second.matrix
    cells = range(first.k)
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
    tight, loose = (plan(scheme_with(place(grid=PART, geo={"level": level, "radius": "400m"}))) for level in (5.5, 1))
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
    scheme = scheme_with(place(grid=PART, geo=NEAR, geo_inf=WIDE))
    attribute = scheme.survey.attributes[0]
    assert attribute.k == 11 and attribute.values[:4] == ("x0y0", "x1y0", "x2y0", "x0y1")
    again = parse_survey(format_survey(scheme.survey))
    assert again == scheme.survey and Scheme(again).fingerprint == scheme.fingerprint
    other = scheme_with(place(geo=NEAR, geo_inf=WIDE, grid={**PART, "inside": RUNS[:-1]}))
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


LEVEL, STEP = 1.0, 1 / 8  # of a cell side: a lattice that has all borders of cells, and all at which a cell is left
WHOLE: dict[str, Any] = {"crs": "own", "cell": 100, "columns": 5, "rows": 4}
BAY = {**WHOLE, "inside": ["x0-4y0", "x0-1y1", "x3-4y1", "x0-1y2", "x4y2", "x0-4y3"]}
RING = {**WHOLE, "columns": 9, "inside": ["x0-8y0", "x0y1", "x8y1", "x0y2", "x8y2", "x0-8y3"]}


def lattice(grid: Grid) -> Floats:
    """Positions in and around a grid, [position, (x, y)]."""
    across, up = (np.arange(-0.5, size + 0.5 + STEP, STEP) * grid.cell for size in (grid.columns, grid.rows))
    return np.stack([part.ravel() for part in np.meshgrid(across, up)], axis=1)


def possible(grid: Grid, positions: Floats, kept: float) -> Mask:
    """[position, cell]: whether a device there can be in a cell, whichever it was in before."""
    middles = (grid.area.positions[:, ::-1] + 0.5) * grid.cell
    nearest = positions.clip(0, np.array([grid.columns, grid.rows]) * grid.cell)
    found = (np.abs(nearest[:, None] - middles) <= kept * grid.cell).all(axis=2)
    found[np.arange(len(positions)), grid.cells_at(*positions.T)] = True
    return np.asarray(found)


def worst(grid: Grid, losses: Floats, radius: float, kept: float) -> float:
    """The largest loss between cells in which two devices can be whose positions are at most `radius` apart."""
    cells = possible(grid, lattice(grid), kept).astype(np.float32)
    near = (squares(grid) <= radius**2).astype(np.float32)
    return float(losses[(cells.T @ near @ cells) > 0].max())


@cache
def squares(grid: Grid) -> Floats:
    """Of the distances between any two positions."""
    x, y = lattice(grid).T
    return np.asarray((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)


def losses_of(channel: object) -> Floats:
    """[cell, cell]: the largest log-ratio of any report."""
    assert isinstance(channel, PlanarChannel)
    logs = np.log(channel.matrix)
    return np.asarray((logs[:, None] - logs).max(axis=2))


@pytest.mark.parametrize("radius", [20, 80, 160])
@pytest.mark.parametrize("grid", [WHOLE, BAY])
@pytest.mark.parametrize("rounds", [("geo",), ("geo_inf", "geo")])
def test_no_two_positions_within_the_radius_lose_more_than_the_level(
    grid: dict[str, Any], radius: int, rounds: tuple[str, ...]
) -> None:
    reaches = {name: {"level": LEVEL * (1 + (name == "geo_inf")), "radius": radius} for name in rounds}
    scheme = scheme_with({"name": "place", "grid": grid, **reaches})
    on = Grid.model_validate(grid)
    found = worst(on, losses_of(scheme.questions[0].channel), radius, KEPT)
    assert found <= LEVEL * (1 + 1e-9)
    # Inside an area the promise counts as if a device also stayed in cells outside, which it is never in.
    assert found > (0.9 if grid is WHOLE else 0.6) * LEVEL
    stated = {loss.metres: loss.per_report for loss in scheme.guarantees.of_places()["place"]}
    assert stated[radius] == pytest.approx(LEVEL)
    for metres in (0.0, 2.0 * radius):
        assert worst(on, losses_of(scheme.questions[0].channel), metres, KEPT) <= stated[metres] * (1 + 1e-9)


def test_half_a_cell_of_hysteresis_and_losses_between_middles_would_break_the_promise() -> None:
    """The rule before terms of version 2, and each half of it alone."""
    grid, radius = Grid.model_validate(WHOLE), 20
    before = losses_of(build("geo-grid", grid.area, Budget(LEVEL * grid.cell / radius)).channel())
    assert worst(grid, before, radius, kept=1) > 14 * LEVEL and worst(grid, before, radius, KEPT) > 7 * LEVEL
    scheme = scheme_with({"name": "place", "grid": WHOLE, "geo": {"level": LEVEL, "radius": radius}})
    assert worst(grid, losses_of(scheme.questions[0].channel), radius, kept=1) > 1.9 * LEVEL


@pytest.mark.parametrize("declared", [WHOLE, BAY])
def test_a_device_is_in_the_cells_that_the_promise_counts_with(declared: dict[str, Any]) -> None:
    grid = Grid.model_validate(declared)
    positions = lattice(grid)[::7]
    keys = ("cell", "columns", "rows")
    own = DeviceGrid({key: declared[key] for key in keys}) if grid.area.inside is None else None
    found = np.zeros((len(positions), grid.area.k), dtype=np.bool_)
    for row, (x, y) in enumerate(positions.tolist()):
        cells = [settled(grid, x, y, last) for last in (None, *range(grid.area.k))]
        found[row, cells] = True
        if own is not None:
            assert [own.cell_of({"x": x, "y": y}, last) for last in (None, *range(grid.area.k))] == cells
    assert (found == possible(grid, positions, KEPT)).all()


@pytest.mark.parametrize("seed", range(8))
def test_distances_inside_are_those_of_all_pairs_of_cells(seed: int) -> None:
    """Also where cells outside move far, and the nearest pairs are not those whose images are furthest apart."""
    random = np.random.default_rng(seed)
    area = Area(7, 6, tuple(sorted(random.choice(42, 2 + seed, replace=False).tolist())))
    cells = np.stack(np.divmod(np.arange(42), 7), axis=1)
    closest = np.hypot(*np.maximum(0, np.abs(cells[:, None] - cells) - 2 * KEPT).transpose(2, 0, 1))
    images = area.nearest(np.arange(42))
    for far in (0, 0.5, 0.8, 1.6, 2.5, 4, 9):
        assert area.apart(far) == pytest.approx(area.distances[images[:, None], images][closest <= far].max())


def test_a_hole_at_which_near_positions_move_far_apart_is_refused() -> None:
    """Failure would look like: two metres in the middle of a lake tell apart like its two shores."""
    with pytest.raises(SurveyError, match="two positions 20 m apart can be in cells 316 m apart") as caught:
        scheme_with({"name": "place", "grid": RING, "geo": {"level": 1, "radius": 20}})
    assert "close the hole" in str(caught.value.hint)
    scheme_with({"name": "place", "grid": {**RING, "inside": None}, "geo": {"level": 1, "radius": 20}})
