"""Places on a grid: the integers keep the promise exactly, devices draw by them, and surveys say it in metres."""

from math import sqrt
from typing import Any

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from protocols.errors import SettingsError
from protocols.mechanisms.catalogue import build_for_places
from protocols.mechanisms.mechanism import Budget
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.displacement import PlanarRound
from protocols.mechanisms.places.law import ANYWHERE, cuts
from protocols.mechanisms.places.rounds import PlanarChannel
from protocols.planning import plan
from protocols.privacy import in_words
from protocols.scheme import Scheme
from protocols.survey_text import format_survey, parse_survey
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


def test_the_channel_is_that_of_the_integers_and_its_transpose_fits() -> None:
    noise = PlanarRound(5, 4, 0.8)
    assert noise.matrix == pytest.approx(np.array(whole_channel(5, 4, 0.8), dtype=float) / 2.0**64, abs=1e-15)
    channel, random = PlanarChannel((noise, PlanarRound(5, 4, 0.4))), np.random.default_rng(1)
    shares, votes = random.dirichlet(np.ones(20), size=3), random.random((3, 20))
    assert channel.support(shares) == pytest.approx(shares @ channel.matrix, abs=1e-12)
    assert channel.back(votes) == pytest.approx(votes @ channel.matrix.T, abs=1e-12)


@pytest.mark.parametrize("budget", [Budget(0.9), Budget(1.4, 0.7)])
@pytest.mark.parametrize(("name", "area"), [("geo-grid", Area(5, 4)), ("geo-tight", Area(4, 4, (0, 1, 4, 8, 9, 13)))])
def test_devices_draw_from_the_channel(name: str, area: Area, budget: Budget) -> None:
    """Also a single one: few rows are drawn by other code than many."""
    mechanism = build_for_places(name, area, budget)
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


def test_a_survey_of_places_is_written_and_read_again_and_its_areas_are_no_terms() -> None:
    scheme = scheme_with(place(geo=NEAR, groups={"west": ["x0y0", "x0y1"]}))
    again = parse_survey(format_survey(scheme.survey))
    assert again == scheme.survey
    assert Scheme(again).fingerprint == scheme_with(place(geo=NEAR)).fingerprint
    assert b"x0y0" not in scheme.terms, "the names of cells follow from the grid"
