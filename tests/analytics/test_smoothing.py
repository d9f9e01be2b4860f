"""Smoothing averages down to the memo's floor where nothing moves, and does no harm where everything does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from analytics.estimation import estimate
from analytics.estimation.estimates import Estimates, variance
from analytics.estimation.smoothing import smooth
from hearsay.running.seeded_keyrings import seeded_keyring
from protocols.question import Question
from protocols.respondent import Respondent
from tests.helpers.crowd import counts_of, scheme_of

K, DEVICES, PERIODS, TOWNS = 6, 1500, 40, 6
BASE = np.array([0.4, 0.25, 0.15, 0.1, 0.07, 0.03])
TERMS = {"l-osue": "eps_inf: 3, eps_1: 1", "l-grr": "eps_inf: 3, eps_1: 1", "oue": "eps: 1"}

Life = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]
LIVES: dict[str, Life] = {
    "nothing moves": lambda values, t, random: values,
    "people drift": lambda values, t, random: np.where(
        random.random(DEVICES) < 0.05, random.choice(K, size=DEVICES, p=np.roll(BASE, t // 8)), values
    ),
    "everybody jumps once": lambda values, t, random: (values + 2) % K if t == PERIODS // 2 else values,
    "there and back every other period": lambda values, t, random: (values + 1 - 2 * (t % 2)) % K,
}


def _lived(mechanism: str, life: str) -> tuple[Question, list[tuple[Estimates, Estimates, np.ndarray]]]:
    """For several towns: smoothed, raw, and the truth."""
    scheme = scheme_of(f"{{name: a, range: {{last: {K - 1}}}, mechanism: {mechanism}}}", TERMS[mechanism])
    question, lived = scheme.question("a"), []
    memo = question.memo_channel if scheme.survey.longitudinal else None
    for town in range(TOWNS):
        random = np.random.default_rng(town)
        values = random.choice(K, size=DEVICES, p=BASE)
        counts, truth = [], []
        for t in range(PERIODS):
            values = LIVES[life](values, t, random)
            counts.append(counts_of(scheme, "a", values, np.zeros(DEVICES, dtype=int), seed=town, period=t)[0][0])
            truth.append(np.bincount(values, minlength=K) / DEVICES)
        n = np.full(PERIODS, DEVICES)
        raw = estimate(counts, n, question.channel, population=n)
        lived.append((smooth(counts, n, question.channel, memo, population=n), raw, np.array(truth)))
    return question, lived


def _loss(pairs: list[tuple[Estimates, np.ndarray]]) -> float:
    return float(np.mean([(estimates.value - truth) ** 2 for estimates, truth in pairs]))


@pytest.mark.parametrize("mechanism", ["l-osue", "l-grr"])
def test_where_nothing_moves_it_approaches_the_floor_of_the_first_round(mechanism: str) -> None:
    question, lived = _lived(mechanism, "nothing moves")
    floor = float(variance(BASE, DEVICES, question.memo_channel, DEVICES).mean())
    raw = _loss([(raw, truth) for _, raw, truth in lived])
    smoothed = _loss([(smoothed, truth) for smoothed, _, truth in lived])
    assert smoothed < 1.8 * (floor + (raw - floor) / PERIODS) < raw / 4


@pytest.mark.parametrize("mechanism", ["l-osue", "l-grr"])
def test_it_does_not_pretend_to_have_averaged_the_memos_away(mechanism: str) -> None:
    question, lived = _lived(mechanism, "nothing moves")
    floor = variance(BASE, DEVICES, question.memo_channel, DEVICES)
    assert all((smoothed.error**2 > 0.8 * floor).all() for smoothed, _, _ in lived)
    held = [(smoothed.low <= truth) & (truth <= smoothed.high) for smoothed, _, truth in lived]
    assert np.mean(held) > 0.8, "a town's memos err together in all periods"


WHO: dict[str, Callable[[np.ndarray, int, np.random.Generator], np.ndarray]] = {
    "half of them, by chance": lambda devices, t, random: random.random(len(devices)) < 0.5,
    "every other period": lambda devices, t, random: (devices + t) % 2 == 0,
    "a quarter of them at weekends": lambda devices, t, random: (t % 7 < 5) | (devices % 4 == 0),
    "ever more of them": lambda devices, t, random: devices < 100 + (DEVICES - 100) * t // PERIODS,
}


@pytest.mark.parametrize("who", WHO)
def test_people_who_stay_away_and_come_back_bring_the_same_memos(who: str) -> None:
    """The truth is what values were drawn from; values and memos are the same whenever a device is there."""
    scheme = scheme_of(f"{{name: a, range: {{last: {K - 1}}}, mechanism: l-grr}}", "eps_inf: 3, eps_1: 2")
    question, held = scheme.question("a"), []
    for town in range(25):
        random, respondent = np.random.default_rng(town), Respondent(scheme, seeded_keyring(town))
        devices = np.arange(DEVICES, dtype=np.uint64)
        memos = respondent.memoise(question, devices, random.choice(K, size=DEVICES, p=BASE))
        counts = []
        for t in range(PERIODS):
            there = WHO[who](devices.astype(int), t, random)
            answers = respondent.report(question, devices[there], t, memos[there])
            counts.append(np.bincount(answers, minlength=K))
        smoothed = smooth(counts, np.sum(counts, axis=1), question.channel, question.memo_channel)
        held.append((smoothed.low <= BASE) & (smoothed.high >= BASE))
    assert np.mean(held) > 0.93


@pytest.mark.parametrize("life", list(LIVES)[1:])
@pytest.mark.parametrize("mechanism", list(TERMS))
def test_where_things_move_it_is_not_worse_than_the_raw_estimate(mechanism: str, life: str) -> None:
    _, lived = _lived(mechanism, life)
    assert _loss([(smoothed, truth) for smoothed, _, truth in lived]) <= _loss(
        [(raw, truth) for _, raw, truth in lived]
    )


def test_periods_without_reports_are_bridged() -> None:
    question = scheme_of("{name: a, values: [x, y], mechanism: l-grr}").question("a")
    n = np.array([1000, 0, 1000])
    counts = np.array([[600, 400], [0, 0], [600, 400]])
    bridged = smooth(counts, n, question.channel, question.memo_channel)
    assert bridged.value[1] == pytest.approx(bridged.value[0], abs=0.02)
    assert (bridged.error[1] >= bridged.error[0]).all()


def test_without_any_reports_nothing_is_known() -> None:
    question = scheme_of("{name: a, values: [x, y], mechanism: l-grr}").question("a")
    assert np.isnan(smooth(np.zeros((3, 2)), np.zeros(3), question.channel, question.memo_channel).value).all()
