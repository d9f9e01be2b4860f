"""Published nowcasts: from the last finals alone, the same bytes after a restart, smaller errors with one_in."""

import numpy as np
import pytest

from hearsay.library.results import run
from protocols.arrays import Floats
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey_text import parse_survey
from stream_app.counting import Statistics
from stream_app.finals import Final, NotCounted
from tests.analytics.test_nowcasting import Truth, jumps, walk
from views.forecasts.observing import share_variances
from views.past import Past
from views.results import nowcasts
from views.results.nowcasts import NOWCASTS, NowcastResult, NowcastTable

TERMS = """{id: days, start: 2026-01-05T00:00:00Z, period: 1d, %s, clock: source, minimum: 20, nowcast: {seasons: []},
            attributes: [{name: plan, values: [free, paid, trial], groups: {open: [free, trial]}}]}"""
TURNS = "eps: 2, one_in: 30"
DEVICES, SHARES = 3300, np.array([0.5, 0.3, 0.2])


def final(scheme: Scheme, period: int, shares: Floats, devices: int = DEVICES, seed: int = 0) -> Final:
    """A final of answers with noise of those whose turn it is, and of the others' presence."""
    (question,), random = scheme.questions, np.random.default_rng([period, seed])
    n = devices // scheme.survey.one_in
    holders = random.multinomial(n, shares)
    own, other = (question.channel.support(one) for one in (np.eye(3), np.roll(np.eye(3), 1, axis=0)))
    supports = random.binomial(holders, own.diagonal()) + random.binomial(n - holders, other.diagonal())
    gap = np.array([1], dtype=np.uint16)
    counts = {question.name: Statistics(gap, np.array([n]), supports[None].astype(np.int64))}
    if scheme.takes_turns:
        counts[PRESENCE_ONLY] = Statistics(gap, np.array([devices - n]), np.zeros((1, 0), dtype=np.int64))
    return Final.of(scheme, period, counts, NotCounted())


def scheme_of(terms: str) -> Scheme:
    return Scheme(parse_survey(TERMS % terms))


def finals_of(scheme: Scheme, periods: int) -> list[Final]:
    return [final(scheme, period, SHARES) for period in range(periods)]


def make(scheme: Scheme, finals: list[Final], memory: dict[str, object] | None = None) -> NowcastResult:
    result = NOWCASTS.make(Past(scheme, finals, {} if memory is None else memory))
    assert result is not None
    return result


def values(result: NowcastResult) -> NowcastTable:
    return next(table for table in result.tables if table.kind == "values")


def test_a_restart_in_any_period_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nowcasts, "BLOCK", 8)  # filters begin at every eighth period
    monkeypatch.setattr(nowcasts, "REACH", 16)
    scheme = scheme_of(TURNS)
    finals, memory = finals_of(scheme, 34), dict[str, object]()
    for last in range(1, len(finals) + 1):
        going_on = make(scheme, finals[:last], memory)
        assert make(scheme, finals[max(0, last - 16) : last]).model_dump_json() == going_on.model_dump_json()
    assert values(going_on).periods == 34 - 24


def test_a_suppressed_period_has_no_nowcast_and_its_counts_have_no_effect() -> None:
    scheme = scheme_of(TURNS)
    before, after = finals_of(scheme, 20), final(scheme, 21, SHARES)
    few = [final(scheme, 20, np.array(shares), devices=300) for shares in ([0.9, 0.1, 0.0], [0.0, 0.1, 0.9])]
    table = values(make(scheme, [*before, few[0]]))
    assert table.nowcast is None and table.surprise is None and table.periods == 20
    one, other = (make(scheme, [*before, suppressed, after]).model_dump_json() for suppressed in few)
    assert one == other


def test_fresh_noise_is_averaged_away_and_that_of_memos_stays_in_the_error() -> None:
    scheme = scheme_of("eps_inf: 2, eps_1: 1")
    table = values(make(scheme, finals_of(scheme, 60)))
    fresh, memo = share_variances(scheme, scheme.questions[0], SHARES, DEVICES, DEVICES, None)
    assert table.error is not None
    assert (0.95 * memo < table.error**2).all() and (table.error**2 < memo + fresh / 4).all()


def test_a_survey_of_many_values_has_nowcasts_if_it_asks_and_the_key_is_no_term() -> None:
    many = "{id: many, start: 2026-01-05T00:00:00Z, period: 1h, eps: 1, %s attributes: [{name: a, range: {last: 300}}]}"
    plain, asked = (parse_survey(many % key) for key in ("", "nowcast: {drift: 0.3},"))
    assert (plain.nowcasts, asked.nowcasts, asked.nowcast_season) == (0, 301, 24)
    assert Scheme(plain).fingerprint == Scheme(asked).fingerprint


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize(("truth", "most"), [(walk(0.0), 0.25), (walk(0.002), 0.25), (walk(0.01), 0.42), (jumps, 0.42)])
def test_with_one_in_30_errors_are_a_part_of_those_of_single_periods(truth: Truth, most: float) -> None:
    scheme, raw, now, covered = scheme_of(TURNS), [], [], []
    for survey in range(12):
        free = np.clip(truth(np.random.default_rng(survey), 1)[:, 0], 0.05, 0.8)
        shares = np.stack([free, 0.9 - free, np.full_like(free, 0.1)], axis=1)
        finals, memory = [final(scheme, t, found, seed=survey) for t, found in enumerate(shares)], dict[str, object]()
        for last in range(1, len(finals) + 1):
            table, true = values(make(scheme, finals[:last], memory)), shares[last - 1]
            if last > 40:
                assert table.value is not None and table.nowcast is not None
                raw.append((table.value - true)[:2])  # of the values that move
                now.append((table.nowcast - true)[:2])
                covered.append(((table.low <= true) & (true <= table.high))[:2])
    part = np.sqrt(np.mean(np.square(now)) / np.mean(np.square(raw)))
    assert part <= most and np.mean(covered) >= 0.92, (part, np.mean(covered))


@pytest.mark.long(part="statistics")
def test_nowcasts_of_devices_that_take_turns_come_through_collecting_and_reading() -> None:
    found = run(parse_survey(TERMS % TURNS), devices=DEVICES, periods=60).everything["values"].to_pylist()
    later = [row for row in found if row["first"] == row["last"] >= 40]
    raw, now = (np.std([row[name] - row["truth"] / DEVICES for row in later]) for name in ("share", "nowcast"))
    assert now < raw / 2, (now, raw)
