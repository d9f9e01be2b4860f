"""Estimates of sets: shares, sizes and groups are right on average, and their intervals hold the truth."""

import numpy as np
import pytest

from analytics.estimation import estimate, exact
from analytics.estimation.votes import nearest
from analytics.mobility import Answers, sizes_of
from analytics.mobility.answers import set_sizes
from protocols.mechanisms import bit_flip
from protocols.question import Question
from protocols.survey import NOTHING, count_values
from protocols.survey.sets import with_paddings
from tests.helpers.surveys import scheme_with, sets_of


def people(k: int, several: int, n: int, mean: float, seed: int = 0) -> np.ndarray:
    """Sets of up to `several` values, of which the first are the most frequent."""
    random = np.random.default_rng(seed)
    weights = 1 / (np.arange(k) + 3.0)
    order = np.argsort(np.log(random.random((n, k))) / weights, axis=1)[:, ::-1][:, :several]
    sizes = np.minimum(random.poisson(mean, n), several)
    return np.where(np.arange(several) < sizes[:, None], order, NOTHING)


def draw(elements: np.ndarray, end: int, random: np.random.Generator) -> np.ndarray:
    """One element of each row, all alike."""
    priorities = np.where(elements < end, random.random(elements.shape), 2)
    return elements[np.arange(len(elements)), priorities.argmin(axis=1)]


def flipped(symbols: np.ndarray, k: int, p: float, random: np.random.Generator) -> np.ndarray:
    """Generalised randomised response."""
    other = (symbols + random.integers(1, k, len(symbols))) % k
    return np.where(random.random(len(symbols)) < p, symbols, other)


def reported(question: Question, elements: np.ndarray, random: np.random.Generator) -> np.ndarray:
    one = draw(elements, question.k, random)
    said = flipped(one, question.k, bit_flip(question.mechanism.one_report).p, random)
    return np.bincount(said, minlength=question.k)


CASES = [(40, 5, 1.0, 3.0), (60, 8, 2.0, 4.0), (200, 10, 2.0, 5.0)]


@pytest.mark.parametrize(("k", "several", "eps", "mean"), CASES)
def test_intervals_of_shares_sizes_and_groups_hold_the_truth(k: int, several: int, eps: float, mean: float) -> None:
    n, runs, random = 4000, 200, np.random.default_rng(5)
    question = scheme_with(sets_of(k, several, mechanism="grr"), eps=eps).questions[0]
    sets = people(k, several, n, mean)
    elements = with_paddings(sets, k, several)
    sizes = np.count_nonzero(sets != NOTHING, axis=1)
    shares = count_values(sets, k) / n
    truth = np.concatenate([shares, [np.mean(sizes <= several - 1 - j) for j in range(several)]])
    by_size = np.append(np.bincount(sizes, minlength=several + 1) / n, sizes.mean())
    inside, z, inside_sizes, biased = [], [], [], []
    group = np.arange(k + several) < 5
    for _ in range(runs):
        counts = reported(question, elements, random)
        answers = Answers(question, n, counts, exact(np.array(n)))
        found = answers.shares
        inside.append((found.low <= truth) & (truth <= found.high))
        z.append((found.value - truth) / found.error)
        assert answers.sizes is not None
        inside_sizes.append((answers.sizes.low <= by_size) & (by_size <= answers.sizes.high))
        together = answers.of_groups(group[None])
        biased.append(float((together.value[0] - shares[:5].sum()) / together.error[0]))
    assert 0.94 <= np.mean(inside) <= 0.96
    assert 0.93 <= np.std(z) <= 1.05
    assert 0.93 <= np.mean(inside_sizes) <= 0.97
    assert abs(np.mean(biased)) < 4 / runs**0.5 and 0.85 < np.std(biased) < 1.1


def test_a_draw_without_paddings_is_biased_and_random_paddings_say_nothing_about_sizes() -> None:
    n, k, several, random = 20_000, 60, 8, np.random.default_rng(6)
    question = scheme_with(sets_of(k, several, mechanism="grr"), eps=2).questions[0]
    sets = people(k, several, n, 4.0)
    elements, sizes = with_paddings(sets, k, several), np.count_nonzero(sets != NOTHING, axis=1)
    truth = count_values(sets, k)[0] / n
    alone = np.where((elements < k) | (sizes == 0)[:, None], elements, question.k)
    shuffled = np.array([np.append(k + random.permutation(several), question.k) for _ in range(n)])
    anywhere = np.where(
        (elements >= k) & (elements < question.k),
        np.take_along_axis(shuffled, elements % k % several, axis=1),
        elements,
    )
    found = {}
    for name, rows in (("right", elements), ("alone", alone), ("anywhere", anywhere)):
        found[name] = estimate(reported(question, rows, random), n, question.channel, population=n)
    assert abs(found["right"].value[0] - truth) < 4 * found["right"].error[0]
    assert abs(found["alone"].value[0] - truth) > 5 * found["alone"].error[0]
    ends = {name: (shares.value[k], shares.value[-1]) for name, shares in found.items()}
    assert ends["right"][0] > 0.85 and ends["right"][1] < 0.15
    assert 0.35 < ends["anywhere"][0] < 0.65 and 0.35 < ends["anywhere"][1] < 0.65


def test_averages_over_periods_have_the_variance_of_memos_and_not_that_of_independent_reports() -> None:
    n, k, several, periods, runs = 2000, 40, 5, 8, 300
    random = np.random.default_rng(7)
    question = scheme_with(sets_of(k, several, mechanism="l-grr"), eps_inf=2, eps_1=1).questions[0]
    first, second = (bit_flip(noise) for noise in (question.mechanism.first, question.mechanism.second) if noise)
    elements = with_paddings(people(k // 2, several, n, 3.0), k, several)  # nobody has the other half
    means = []
    for _ in range(runs):
        memos = flipped(draw(elements, question.k, random), question.k, first.p, random)
        counts = [
            np.bincount(flipped(memos, question.k, second.p, random), minlength=question.k) for _ in range(periods)
        ]
        means.append(estimate(np.mean(counts, axis=0), n, question.channel).value[k // 2 : k])
    one, memo = (channel.variance(np.zeros(question.k))[0] / n for channel in (question.channel, question.memo_channel))
    variance = np.var(means)
    assert 0.9 < variance / (memo + (one - memo) / periods) < 1.1
    assert variance / (one / periods) > 1.4


def test_full_sets_are_said_to_be_too_many_where_they_are() -> None:
    n, k, random = 100_000, 60, np.random.default_rng(8)
    sets = people(k, 20, n, 4.8)
    for several, warns in ((5, True), (12, False)):
        question = scheme_with(sets_of(k, several, mechanism="grr"), eps=2).questions[0]
        counts = reported(question, with_paddings(sets, k, several), random)
        sizes = sizes_of(Answers(question, n, counts, exact(np.array(n))))
        assert sizes is not None and sizes.overflow is warns


def test_consistent_shares_are_possible_and_near_the_estimates_and_sizes_are_linear() -> None:
    channel = scheme_with(sets_of(30, 4, mechanism="grr"), eps=1).questions[0].channel
    rough = np.random.default_rng(9).normal(4 / 34, 0.5, 34)
    found = nearest(rough, channel)
    assert found.min() >= 0 and found.max() <= 1 and found.sum() == pytest.approx(4, abs=1e-6)
    assert (np.diff(found[30:]) <= 0.02).all()
    possible = np.array([*np.full(30, 0.05), 1, 0.8, 0.5, 0.2])
    assert nearest(possible, channel) == pytest.approx(possible, abs=1e-9)
    spread = np.diag([0.01, 0.04])
    assert set_sizes(np.array([0.9, 0.4]), spread).error == pytest.approx([0.2, 0.05**0.5, 0.1, 0.05**0.5])
