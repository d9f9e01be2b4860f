"""Numbers asked by thresholds: means and quantiles are right, their intervals hold the truth, and memos are two."""

from itertools import product
from math import log

import numpy as np
import pytest

from analytics.estimation import exact
from analytics.mobility.answers import Answers
from analytics.mobility.attributes import amount
from analytics.mobility.model import Amount
from lab.seeded_keyrings import seeded_keyring
from protocols.mechanisms import Flip
from protocols.privacy.risk import value_guess
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.helpers.crowd import counts_of
from tests.helpers.surveys import scheme_with

QUARTERS = (0.25, 0.5, 0.75)
N = 10_000
SHAPES = "bell", "minutes", "money", "two humps"


def asked(slots: int, **terms: float) -> Scheme:
    number = {"name": "a", "range": {"last": 60}, "quantiles": QUARTERS, "mechanism": "threshold", "parameter": slots}
    return scheme_with(number, **terms)


def numbers(shape: str, random: np.random.Generator, n: int = N) -> np.ndarray:
    half = random.random(n) < 0.5
    drawn = {
        "bell": random.normal(30, 9, n),
        "minutes": np.where(random.random(n) < 0.35, 0, random.exponential(15, n)),
        "money": np.exp(random.normal(2.3, 0.8, n)),
        "two humps": np.where(half, random.normal(12, 4, n), random.normal(48, 4, n)),
    }[shape]
    return np.clip(np.floor(drawn), 0, 60).astype(np.int64)


def found(question: Question, counts: np.ndarray) -> Amount:
    n = int(counts.sum())
    return amount(Answers(question, n, counts, exact(np.array(float(n)))))


@pytest.mark.parametrize("slots", [1, 7, 12])  # 60 places between numbers: slots of 7 end between two
def test_the_mean_is_right_for_numbers_at_between_and_beyond_the_borders_of_slots(slots: int) -> None:
    """The chance to be above the threshold, over all places of it, is the number in units of the range."""
    (question,) = asked(slots, eps=1).questions
    encoding, places = question.mechanism.encoding, np.arange(slots * 60)
    for number in (0, 1, 5, 8, 9, 31, 59, 60):
        above = encoding.cells(np.full(len(places), number), places)
        assert above.mean() == pytest.approx(number / 60, abs=1e-12)
        assert np.bincount(encoding.finish(above, places) % slots).tolist() == [60] * slots


def test_intervals_of_means_quantiles_and_shares_hold_the_truth() -> None:
    runs, random, scheme = 40, np.random.default_rng(3), asked(12, eps=1)
    inside, deviations, quantiles, shares = [], [], [], []
    for run, shape in product(range(runs), SHAPES):
        values = numbers(shape, random)
        (counts,), _ = counts_of(scheme, "a", values, np.zeros(len(values), dtype=np.int64), run)
        summary, truth = found(scheme.questions[0], counts), values.mean()
        assert summary.mean.error and summary.mean.value is not None and summary.mean.low and summary.mean.high
        inside.append(summary.mean.low <= truth <= summary.mean.high)
        deviations.append((summary.mean.value - truth) / summary.mean.error)
        true = np.quantile(values, QUARTERS, method="inverted_cdf")
        quantiles.append([q.low <= at <= q.high for q, at in zip(summary.quantiles, true, strict=True)])
        above = scheme.questions[0].attribute.people_above(np.bincount(values, minlength=61)) / N  # type: ignore[attr-defined]
        curve = Answers(scheme.questions[0], N, counts, exact(np.array(float(N)))).shares[:12]
        shares.append((curve.low <= above) & (above <= curve.high))
    assert np.mean(inside) >= 0.9 and abs(np.mean(deviations)) < 4 / np.sqrt(len(inside))
    assert np.mean(quantiles, axis=0).min() >= 0.94
    assert np.mean(shares) == pytest.approx(0.955, abs=0.02)


def drawn(question: Question, values: np.ndarray, random: np.random.Generator, secret: bool = True) -> Amount:
    """What is found if devices draw anew. Not `secret`: they compare with the lower border of their slot."""
    places = random.integers(0, 12 * 60, len(values))
    above = question.mechanism.encoding.cells(values, places if secret else places // 60 * 60)
    noisy = np.where(random.random(len(values)) < question.mechanism.first.p, above, 1 - above)  # type: ignore[union-attr]
    return found(question, np.bincount(question.mechanism.encoding.finish(noisy, places), minlength=24))


def covered(question: Question, shape: str, part: float = 1) -> bool:
    """Wald's test: whether means are inside so large a part of their interval in 95 % of all cases, and not in 93 %.

    It stops as soon as one of both is twenty times as likely.
    """
    random, odds = np.random.default_rng(5), 0.0
    for _ in range(20_000):
        values = numbers(shape, random)
        mean = drawn(question, values, random).mean
        assert mean.value is not None and mean.low is not None and mean.high is not None
        off = values.mean() - mean.value
        inside = part * (mean.low - mean.value) <= off <= part * (mean.high - mean.value)
        odds += log(0.95 / 0.93) if inside else log(0.05 / 0.07)
        if abs(odds) > log(20):
            return odds > 0
    raise AssertionError("20,000 runs do not tell")


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("eps", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_means_hold_the_truth_as_often_as_they_say(shape: str, eps: float) -> None:
    (question,) = asked(12, eps=eps).questions
    assert covered(question, shape)
    assert not covered(question, shape, part=0.8), "the control: intervals that are too narrow"


def test_thresholds_at_borders_of_slots_would_be_off() -> None:
    """The control: devices that compare with the border of their slot have no unbiased mean."""
    (question,) = asked(12, eps=1).questions
    values, random = numbers("minutes", np.random.default_rng(1), 400_000), np.random.default_rng(2)
    means = [drawn(question, values, random, secret).mean for secret in (True, False)]
    right, wrong = (abs((mean.value or 0) - values.mean()) / (mean.error or 1) for mean in means)
    assert right < 4 < 10 < wrong


@pytest.mark.parametrize(("slots", "last"), [(1, 3), (2, 5), (3, 7), (5, 5)])
def test_a_report_tells_what_enumeration_says(slots: int, last: int) -> None:
    """All places of thresholds, which are not shown: the best guess of the number, and the loss of any two."""
    number = {"name": "a", "range": {"last": last}, "mechanism": "threshold", "parameter": slots}
    scheme = scheme_with(number, eps_inf=2, eps_1=1)
    (question,) = scheme.questions
    encoding, noise, places = question.mechanism.encoding, question.mechanism.one_report, np.arange(slots * last)
    assert isinstance(noise, Flip)
    chances = np.zeros((last + 1, question.k))
    for value in range(last + 1):
        cells = encoding.cells(np.full(len(places), value), places)
        for said in (0, 1):
            weights = np.where(cells == said, noise.p, noise.q) / len(places)
            np.add.at(chances[value], encoding.finish(np.full(len(places), said), places), weights)
    assert value_guess(question) == pytest.approx(chances.max(axis=0).sum() / (last + 1), abs=1e-12)
    assert np.log(chances.max(axis=0) / chances.min(axis=0)).max() == pytest.approx(scheme.guarantees.per_report.whole)
    assert question.channel.support(np.ones(question.k) / 2) == pytest.approx(np.full(question.k, 1 / question.k))
    above = np.clip(np.arange(last + 1)[:, None] / last * slots - np.arange(slots), 0, 1)
    shares = np.concatenate([above, 1 - above], axis=1)
    assert np.array([question.channel.support(one) for one in shares]) == pytest.approx(chances)


def test_a_year_of_changing_numbers_has_two_memos() -> None:
    scheme = asked(12, eps_inf=2, eps_1=1)
    (question,) = scheme.questions
    respondent, devices = Respondent(scheme, seeded_keyring(4)), np.arange(200, dtype=np.uint64)
    random = np.random.default_rng(1)
    year = np.stack([respondent.cells(question, devices, random.integers(0, 61, 200)) for _ in range(365)])
    assert max(len(np.unique(cells)) for cells in year.T) == 2 == question.mechanism.encoding.states
    promise = scheme.guarantees
    assert promise.renaming is not None and promise.renaming.whole == pytest.approx(4.0)
    control = scheme_with({"name": "a", "range": {"last": 60}, "mechanism": "l-geometric"}, eps_inf=2, eps_1=1)
    assert control.questions[0].mechanism.encoding.states == 61


def without_slots(question: Question, empty: list[int], n: int = 4000) -> Amount:
    """What is found of even numbers, if no device has drawn some of the slots."""
    slots = question.k // 2
    flip = question.mechanism.first
    true = 1 - (np.arange(slots) + 0.5) / slots
    above = np.rint(n * (flip.q + true * (flip.p - flip.q))).astype(np.int64)  # type: ignore[union-attr]
    counts = np.concatenate([above, n - above])
    for slot in empty:
        counts[[slot, slot + slots]] = 0
    return found(question, counts)


@pytest.mark.parametrize("empty", [[0], [5], [11], [3, 4], [0, 1, 10, 11]])
def test_quantiles_are_interpolated_over_the_slots_that_have_answers(empty: list[int]) -> None:
    (question,) = asked(12, eps=3).questions
    whole, summary = without_slots(question, []), without_slots(question, empty)
    assert [quantile.at for quantile in summary.quantiles] == [*QUARTERS]
    for quantile, known in zip(summary.quantiles, whole.quantiles, strict=True):
        assert quantile.value == pytest.approx(60 * quantile.at, abs=2)
        assert quantile.low <= known.low and known.high <= quantile.high, "fewer answers say no more"
    assert (summary.top is not None and summary.top.value is None) == (11 in empty)


def test_a_quantile_of_which_answers_say_nothing_is_left_out() -> None:
    (question,) = asked(12, eps=1).questions
    counts = np.zeros(24, dtype=np.int64)
    counts[5] = 1
    assert found(question, counts).quantiles == ()
    assert found(question, np.ones(24, dtype=np.int64)).quantiles, "where each slot has answers, all are published"
