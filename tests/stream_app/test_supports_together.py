"""Where no window has answers of first reports, supports are counted of all gaps together: the state stays small."""

from dataclasses import replace

import numpy as np
import pytest

from protocols.errors import AnotherRelease, SurveyError
from protocols.scheme import Scheme
from protocols.survey import Released
from protocols.survey_text import parse_survey
from stream_app.counting import PeriodCounts, Statistics
from stream_app.counting.counters import Counts, add_counts, version_of
from stream_app.counting.partials import Part, decode_partial, encode_partial
from stream_app.counting.state import OpenPeriod
from stream_app.log import codec
from stream_app.sizes import check_sizes, counter_bytes
from tests.helpers.frames import random_frame

ATTRIBUTES = {
    "symbols": "{name: a, values: [x, y, z], mechanism: l-grr}",
    "bits": "{name: a, range: {last: 9}, mechanism: l-osue}",
}
FRESH = "{name: a, range: {last: 99}, mechanism: olh}"


def scheme_of(attribute: str, terms: str, budgets: str = "eps_inf: 3, eps_1: 1") -> Scheme:
    text = f"{{id: s, start: 2026-01-05T00:00:00Z, period: 1h, {budgets}, {terms}, attributes: [{attribute}]}}"
    return Scheme(parse_survey(text))


def counted(scheme: Scheme, frames: int = 3) -> PeriodCounts:
    counts = PeriodCounts(scheme)
    for seed in range(frames):
        counts.count(random_frame(scheme, 200, period=9, seed=seed))
    return counts


def both(attribute: str, budgets: str = "eps_inf: 3, eps_1: 1") -> tuple[Scheme, Counts, Scheme, Counts]:
    """The same reports counted by gap, and with the supports of all gaps together."""
    by_gap = scheme_of(attribute, "horizon: 7", budgets)
    together = scheme_of(attribute, "horizon: 7, minimum: 20", budgets)
    return by_gap, counted(by_gap).snapshot(), together, counted(together).snapshot()


@pytest.mark.parametrize("attribute", ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_the_sums_over_all_gaps_are_the_same(attribute: str) -> None:
    _, by_gap, scheme, together = both(attribute)
    one, other = by_gap["a"], together["a"]
    assert (len(one.N), len(other.N), len(other.gaps)) == (7, 1, 7)
    assert other.n.tolist() == one.n.tolist() and other.widths.tolist() == one.widths.tolist()
    assert other.supports.tolist() == one.supports.tolist()
    twice = add_counts([together, together], scheme)["a"]
    assert twice.supports.tolist() == (2 * one.supports).tolist() and twice.n.tolist() == (2 * one.n).tolist()


@pytest.mark.parametrize("waiting", [True, False], ids=["some wait", "none waits"])
def test_answers_with_a_fresh_hash_wait_together(waiting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not waiting:
        monkeypatch.setattr("stream_app.counting.gathered.ALWAYS_WAITING", 0)
    by_gap, apart, scheme, together = both(FRESH, "eps: 2")
    assert (len(together["a"].N), len(together["a"].waits)) == (1, 1)
    sums = add_counts([apart], by_gap)["a"], add_counts([together], scheme)["a"]
    assert sums[0].supports.tolist() == sums[1].supports.tolist() and len(sums[1].N) == 1


@pytest.mark.parametrize("attribute", [*ATTRIBUTES.values(), FRESH], ids=[*ATTRIBUTES, "fresh"])
def test_an_open_period_of_release_02_goes_on(attribute: str) -> None:
    """It has supports by gap: they are added up when it is read, as if they had always been counted together."""
    budgets = "eps: 2" if attribute == FRESH else "eps_inf: 3, eps_1: 1"
    _, by_gap, scheme, together = both(attribute, budgets)
    more = random_frame(scheme, 50, period=9, seed=7)
    went_on, always = PeriodCounts(scheme, by_gap), PeriodCounts(scheme, together)
    for counts in (went_on, always):
        counts.count(more)
    found, expected = (add_counts([counts.snapshot()], scheme)["a"] for counts in (went_on, always))
    assert found.supports.tolist() == expected.supports.tolist() and found.n.tolist() == expected.n.tolist()
    mixed = add_counts([by_gap, together], scheme)["a"]
    assert mixed.supports.tolist() == (2 * add_counts([together], scheme)["a"].supports).tolist()


def test_release_02_refuses_records_whose_rows_it_would_take_for_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    _, by_gap, scheme, together = both(ATTRIBUTES["symbols"])
    assert (version_of(by_gap), version_of(together)) == (codec.COMMON, codec.VERSION)
    part = encode_partial(Part("s", 9, 0, 4, closed=True, counts=together))
    state = replace(OpenPeriod.empty(scheme), counts=PeriodCounts(scheme, together)).encode()
    read = decode_partial(part)
    assert isinstance(read, Part) and read.counts["a"].supports.tolist() == together["a"].supports.tolist()
    again = OpenPeriod.decode(state, scheme).counts.snapshot()["a"]
    assert again.supports.tolist() == together["a"].supports.tolist()
    monkeypatch.setattr(codec, "VERSION", codec.COMMON)
    for record in (part, state):
        with pytest.raises(AnotherRelease):
            codec.unpack(record)


def test_noise_counts_by_gap_only_where_answers_of_units_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = scheme_of(ATTRIBUTES["symbols"], "horizon: 48, presence_epsilon: 1")
    assert len(counted(plain).snapshot()["a"].N) == 1
    units = Released(("period", "day"), (), ("period", "day"))
    monkeypatch.setattr(type(plain.survey), "released", property(lambda survey: units))
    assert len(counted(plain).snapshot()["a"].N) > 1


def test_many_areas_fit_with_a_horizon_of_a_week_of_hours() -> None:
    areas = "{name: area, range: {last: 34944}, mechanism: l-osue}"
    survey = scheme_of(areas, "horizon: 168, minimum: 20").survey
    check_sizes(survey)
    assert counter_bytes(survey) < 34_945 * 8 * 2.2
    with pytest.raises(SurveyError, match="counters a period"):
        scheme_of(areas, "horizon: 168")


def test_counts_without_reports_have_one_row_of_nothing() -> None:
    scheme = scheme_of(ATTRIBUTES["bits"], "horizon: 7, minimum: 20")
    empty = PeriodCounts(scheme).snapshot()["a"]
    assert isinstance(empty, Statistics) and empty.N.shape == (1, 10) and not np.any(empty.N)
