"""What a reader finds out about who came again and who stayed away, from what the merge releases.

Gaps and flags say when a device came last, so exact numbers of visitors say how many stayed away. Numbers with noise do
not, even if the noise is known to be no more than it exceeds once in a million.
"""

import json
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from protocols.privacy import SeriesName, noise_quantile
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import Frame
from stream_app.counting.counters import Counts, PeriodCounts
from stream_app.finals import Final
from tests.helpers.flows import (
    Reader,
    Seen,
    Weights,
    by_week,
    flows_of,
    last_reports,
    new_flows,
    one_of_a_week_away,
    one_person_away,
    random_days,
    window_flows,
)
from tests.helpers.published import finals_of

FEW = 20
SURE = 1 - 1e-6
ANSWERS = "attributes: [{name: a, values: [x, y], mechanism: grr}]"


def by_gaps(rule: str, horizon: int = 8) -> Scheme:
    text = f"{{id: s, start: 2026-01-05T00:00:00Z, period: 1d, horizon: {horizon}, eps: 1, {rule}, {ANSWERS}}}"
    return Scheme(parse_survey(text))


def by_units(rule: str) -> Scheme:
    """From a Monday on."""
    text = "id: s, start: 2026-01-05T00:00:00Z, period: 1d, visitors: {units: [week, ever]}, eps: 1"
    return Scheme(parse_survey(f"{{{text}, {rule}, {ANSWERS}}}"))


def counts_of(scheme: Scheme, seen: Seen) -> dict[int, Counts]:
    """The counts of a collection, which all say the same: the device's flags or gaps are what is read."""
    before = last_reports(seen)
    found = {}
    for period, there in enumerate(seen):
        visits = scheme.survey.visits.of(before[period][there], period)
        tokens = np.arange(1, len(visits) + 1, dtype=np.uint64)
        counter = PeriodCounts(scheme)
        counter.count(
            Frame("s", scheme.fingerprint, period, tokens, visits, {"a": np.zeros(len(visits), dtype=np.uint8)})
        )
        found[period] = counter.snapshot()
    return found


def told(scheme: Scheme, finals: Sequence[Final]) -> Reader:
    """A reader of the released numbers, each with the interval that its noise exceeds once in a million."""
    reader = Reader(len(finals))
    for final in finals:
        for weights, number, half_width in released(scheme, final):
            if number is None:
                reader.tell(weights, 0, FEW - 1)
            else:
                reader.tell(weights, number - half_width, number + half_width)
    return reader


def released(scheme: Scheme, final: Final) -> Iterator[tuple[Weights, int | None, int]]:
    """The numbers of each window: as flows, what is released, and how far it may be from the truth.

    The sum of new devices adds nothing to its terms.
    """
    horizon = scheme.survey.horizon if scheme.survey.visitors is None else None
    for window in final.windows or ():
        if window.kind == "ever" and scheme.presence is not None:
            continue
        all_of_it = window_flows(window.first, final.period)
        if scheme.presence is None:
            yield all_of_it, window.visitors, 0
            if window.new is not None:
                yield new_flows(window.first, final.period, horizon), window.new, 0
            continue
        if window.visitors is not None:
            what = SeriesName("reports" if window.kind == "period" else "visitors", window.kind)
            yield all_of_it, window.visitors, half_width(scheme, what)
        if window.new is not None:
            new = new_flows(window.first, final.period, horizon)
            yield new, window.new, half_width(scheme, SeriesName("new", window.kind))


def half_width(scheme: Scheme, series: SeriesName) -> int:
    assert scheme.presence is not None
    return noise_quantile((scheme.presence.scales[series],), SURE)


# The rule of `minimum` in release 0.2, as published numbers: (first gap, last gap, reports) of each period.

ONE_AWAY_IN_0_2 = json.loads("[[[1, 5, 60]], [[1, 1, 59], [2, 5, 60]]]")
"""60 devices on day 0; on day 1 there are 59 with gap 1, and 60 that are new."""
WEEKS_IN_0_2 = json.loads('{"visitors": [100, 159], "new": [100, 60]}')
"""Of two weeks."""


def test_the_rule_of_0_2_told_that_one_of_60_stayed_away() -> None:
    """The control: with what release 0.2 published under `minimum: 20`, the reader finds who left."""
    reader = Reader(2)
    for period, ranges in enumerate(ONE_AWAY_IN_0_2):
        for first, last, n in ranges:
            gaps = range(first, last + 1)
            cells = {(period - gap, period): 1.0 for gap in gaps if gap <= period}
            if last == 5:
                cells[-1, period] = 1.0
            reader.tell(cells, n, n)
    certain = reader.certain(flows_of(one_person_away()[:2]), FEW)
    assert ("of 0, not back until 1", 1.0, 1.0) in certain
    weeks = Reader(2)
    for week in range(2):
        weeks.tell(window_flows(week, week), *[WEEKS_IN_0_2["visitors"][week]] * 2)
        weeks.tell(new_flows(week, week), *[WEEKS_IN_0_2["new"][week]] * 2)
    certain = weeks.certain(flows_of(by_week(one_of_a_week_away())), FEW)
    assert ("of 0, not back until 1", 1.0, 1.0) in certain


def test_from_publish_from_on_numbers_tell_who_stayed_away_as_the_texts_say() -> None:
    scheme = by_gaps("minimum: 20")
    seen = one_person_away()
    certain = told(scheme, finals_of(scheme, counts_of(scheme, seen))).certain(flows_of(seen), FEW)
    assert {("of 0, not back until 1", 1.0, 1.0), ("last in 0, again in 3", 1.0, 1.0)} <= set(certain)
    scheme = by_units("minimum: 20")
    weeks = told_of_weeks(scheme, one_of_a_week_away())
    certain = weeks.certain(flows_of(by_week(one_of_a_week_away())), FEW)
    assert ("of 0, not back until 1", 1.0, 1.0) in certain


def told_of_weeks(scheme: Scheme, seen: Seen) -> Reader:
    """A reader of what is released of weeks alone."""
    finals = finals_of(scheme, counts_of(scheme, seen))
    reader = Reader(len(seen) // 7)
    for number, final in enumerate(finals[6::7]):
        (week,) = (window for window in final.windows or () if window.kind == "week")
        for weights, released in ((window_flows, week.visitors), (new_flows, week.new)):
            if released is not None:
                reader.tell(weights(number, number), released, released)
    return reader


@pytest.mark.parametrize("seen", [one_person_away(), one_of_a_week_away()[:8]], ids=["one of 60", "one of 100"])
@pytest.mark.parametrize("of", [by_gaps, by_units])
def test_with_noise_nobody_is_known_to_have_left_or_to_have_come_again(seen: Seen, of: Callable[[str], Scheme]) -> None:
    scheme = of("presence_epsilon: 1")
    for key in range(3):
        finals = finals_of(scheme, counts_of(scheme, seen), bytes([key] * 16))
        reader = told(scheme, finals)
        assert len(reader.told) >= 2 * len(seen), "of each period a number of visitors, at least"
        assert reader.certain(flows_of(seen), FEW) == []


CROWDS = [(60, 0.9, 0.99), (150, 0.75, 0.95)]
ALSO = pytest.param(300, 0.9, 0.99, marks=pytest.mark.long(part="statistics"))


@pytest.mark.parametrize(("devices", "least", "most"), [*CROWDS, ALSO])
def test_of_random_crowds_exact_numbers_tell_much_and_numbers_with_noise_nothing(
    devices: int, least: float, most: float
) -> None:
    random = np.random.default_rng(devices)
    seen = random_days(random, 7, devices, least, most)
    flows = flows_of(seen)
    exact = by_gaps("minimum: 20")
    assert told(exact, finals_of(exact, counts_of(exact, seen))).certain(flows, FEW)
    for noised in (by_gaps("presence_epsilon: 1"), by_units("presence_epsilon: 1")):
        assert told(noised, finals_of(noised, counts_of(noised, seen))).certain(flows, FEW) == []
