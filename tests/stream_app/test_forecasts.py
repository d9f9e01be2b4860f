"""Published forecasts: made from finals alone, the same bytes after any restart, nothing about suppressed cells."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from stream_app.counting import Statistics
from stream_app.log.flushes import Output, TopicName
from stream_app.results import (
    FORECASTS,
    HISTOGRAMS,
    ForecastResult,
    Histogram,
    PublishedResults,
    ResultKey,
    build_histogram,
    cells,
    observe,
    release,
)
from stream_app.results.forecasting import Forecasting

PERIODS, SEASON, DAY_OFF = 190, 7, 150
TERMS = """{id: days, start: 2026-01-05T00:00:00Z, period: 1d, %s, horizon: 2, clock: source,
            forecast: {ahead: 3, seasons: [7]}, attributes: [
            {name: area, values: [a, b, c], groups: {ab: [a, b]}}, {name: kind, values: [x, y]}]}"""
LONGITUDINAL = "eps_inf: 4, eps_1: 2, minimum: 400, solution: spl"


def scheme_of(terms: str = LONGITUDINAL) -> Scheme:
    return Scheme(parse_survey(TERMS % terms))


def final(scheme: Scheme, period: int, devices: int | None = None) -> Histogram:
    """A final of so many reports; area a has more of them at the end of each week, and b has some on one day."""
    random = np.random.default_rng([1, period])
    n = devices or 3000 + 100 * (period % SEASON) + int(random.normal(0, 30))
    busy = 0.3 + 0.05 * (period % SEASON)
    shares = {"area": np.array([busy, 0.1, 0.9 - busy]), "kind": np.array([0.5, 0.5])}
    if period == DAY_OFF:
        shares["area"] = np.array([0.1, 0.8, 0.1])
    counts = {}
    for question in scheme.questions:
        asked = n // 2 if scheme.discloses else n
        supports = random.binomial(asked, question.channel.support(shares[question.name]))
        counts[question.name] = Statistics(np.array([1], dtype=np.uint16), np.array([asked]), supports[None])
    if scheme.presence is not None:
        return build_histogram("final", scheme, period, release(counts, 0, scheme, period, None, Keyring(bytes(32))))
    return build_histogram("final", scheme, period, counts)


class Topic(PublishedResults):
    """Results in memory."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []

    def messages(self, topic: TopicName) -> Iterator[Output]:
        return (output for output in self.outputs if output.topic == topic)

    def publish(self, scheme: Scheme, histogram: Histogram) -> Output:
        key = ResultKey(scheme.survey.id, histogram.period)
        self.outputs += HISTOGRAMS.messages(key, histogram)
        return self.outputs[-1]


def published(scheme: Scheme, finals: list[Histogram], restarts: frozenset[int] = frozenset()) -> Topic:
    """Everything that is published if the process is restarted after some periods, some before their forecast."""
    topic = Topic()
    forecasting = Forecasting({scheme.survey.id: scheme}.get, topic)
    for histogram in finals:
        output = topic.publish(scheme, histogram)
        if histogram.period in restarts:
            forecasting = Forecasting({scheme.survey.id: scheme}.get, topic)
            if histogram.period % 2:
                continue  # killed before the forecast: it follows with the next one
        topic.outputs += forecasting.after(output)
    topic.outputs += Forecasting({scheme.survey.id: scheme}.get, topic).catch_up(scheme.survey.id)
    return topic


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return scheme_of()


@pytest.fixture(scope="module")
def finals(scheme: Scheme) -> list[Histogram]:
    return [final(scheme, period, devices=100 if period == 170 else None) for period in range(5, PERIODS)]


@pytest.fixture(scope="module")
def whole(scheme: Scheme, finals: list[Histogram]) -> Topic:
    return published(scheme, finals)


def test_a_restart_publishes_the_same_bytes(scheme: Scheme, finals: list[Histogram], whole: Topic) -> None:
    expected = whole.values(FORECASTS, scheme.survey.id)
    again = published(scheme, finals, frozenset({20, 99, 100, 121, 149, 150, 151, 189}))
    assert again.values(FORECASTS, scheme.survey.id) == expected
    assert [key.period for key in expected] == list(range(49, PERIODS))  # from the first fit on, one for each final


def test_a_suppressed_period_has_no_forecast_and_no_effect(
    scheme: Scheme, finals: list[Histogram], whole: Topic
) -> None:
    results = {result.period: result for result in whole.forecasts(scheme.survey.id)}
    assert all(cell.suppressed == "minimum" and cell.mean == () for cell in results[170].cells)
    assert all(cell.suppressed is None for cell in results[171].cells)
    others = [final(scheme, 170, devices=399) if found.period == 170 else found for found in finals]
    later = published(scheme, others[:170]).values(FORECASTS, scheme.survey.id)
    assert later.items() <= whole.values(FORECASTS, scheme.survey.id).items()


def test_what_leaves_its_interval_is_marked_and_counted(scheme: Scheme, whole: Topic) -> None:
    results: dict[int, ForecastResult] = {result.period: result for result in whole.forecasts(scheme.survey.id)}
    marked = {cell.value for cell in results[DAY_OFF].cells if cell.unexpected}
    assert {"a", "b", "c"} <= marked and "visitors" not in marked
    calm = [cell.unexpected for period, result in results.items() if period < DAY_OFF for cell in result.cells]
    assert np.mean(calm) < 0.05
    noted: list[tuple[str, int, int]] = []
    again = Forecasting({scheme.survey.id: scheme}.get, whole, lambda *counts: noted.append(counts))
    again._messages(results[DAY_OFF])
    assert noted == [("days", 7, sum(cell.unexpected for cell in results[DAY_OFF].cells))]


def test_forecasts_have_the_season_and_intervals_of_both_kinds(scheme: Scheme, whole: Topic) -> None:
    last = whole.forecasts(scheme.survey.id)[-1]
    visitors, a, *_ = last.cells
    assert (visitors.attribute, a.attribute, a.value, last.period) == (None, "area", "a", PERIODS - 1)
    for step, mean in enumerate(visitors.mean):
        assert mean == pytest.approx(3000 + 100 * ((PERIODS + step) % SEASON), abs=80)
    assert a.truth_95 and a.publication_95 and a.truth_80
    assert a.truth_95.low[0] < a.truth_80.low[0] < a.mean[0] < a.truth_80.high[0] < a.truth_95.high[0]
    assert visitors.truth_95 == visitors.publication_95  # their number is exact


def test_periods_that_will_be_suppressed_are_not_forecast() -> None:
    scheme = scheme_of("eps: 2, minimum: 3150, solution: spl")
    results = published(scheme, [final(scheme, period) for period in range(120)]).forecasts(scheme.survey.id)
    visitors = next(r.cells[0] for r in reversed(results) if r.cells[0].suppressed is None and r.period % SEASON == 6)
    assert visitors.mean == (None, None, pytest.approx(3200, abs=60))


NOISES = {
    "two rounds": "eps_inf: 4, eps_1: 2, solution: spl",
    "memo only": "eps_inf: 2, solution: spl",
    "one-shot": "eps: 2, solution: spl",
    "one attribute each": "eps_inf: 4, eps_1: 2",
    "one-shot, one attribute each": "eps: 2",
    "presence noise": "eps: 2, solution: spl, presence_epsilon: 0.5",
}


@pytest.mark.parametrize("terms", NOISES.values(), ids=NOISES)
def test_fresh_noise_and_memos_together_are_the_published_error(terms: str) -> None:
    scheme = scheme_of(terms)
    histogram = final(scheme, 8)
    seen = observe(scheme, histogram)
    named = dict(zip(map(str, cells(scheme)), range(len(seen.values)), strict=True))
    area, total = histogram.attribute("area"), histogram.n
    assert area.error is not None and area.estimate is not None and total is not None
    place = named["area=a"]
    assert seen.values[place] == pytest.approx(area.estimate[0] * total)
    assert seen.fresh[place] + seen.memo[place] == pytest.approx((area.error[0] * total) ** 2, rel=0.02)
    assert seen.values[named["area=ab"]] == pytest.approx(seen.values[place] + seen.values[named["area=b"]])
    assert (seen.memo[place] == 0) == (terms in (NOISES["one-shot"], NOISES["presence noise"]))
    assert (seen.fresh[place] < 1e-6 * seen.memo[place]) == (terms == NOISES["memo only"])
    assert (seen.fresh[0] > 0) == ("presence" in terms)


def test_a_forecast_is_no_term(scheme: Scheme) -> None:
    without = parse_survey((TERMS % LONGITUDINAL).replace("forecast: {ahead: 3, seasons: [7]},", ""))
    assert Scheme(without).fingerprint == scheme.fingerprint
    assert list(Forecasting({"days": Scheme(without)}.get, Topic()).catch_up("days")) == []
