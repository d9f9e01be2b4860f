"""The central figure against attacks that enumerate everything published, and against formulas known to fail."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations, product
from math import ceil, comb, erf, exp, inf, log, log2, sqrt
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from protocols.arrays import Floats
from protocols.mechanisms import Flip
from protocols.mechanisms.rounds import grr
from protocols.planning.central import eps_1_for
from protocols.privacy import CentralLoss, central_loss
from protocols.privacy.central import figure as figures
from protocols.privacy.central.families import _symbols as symbols
from protocols.privacy.central.families import walks_of
from protocols.privacy.central.figure import _noise as noise_on_answers
from protocols.privacy.central.walks import CUT, RATES, Losses, binomial, losses_of, quantile, together
from protocols.privacy.central.walks import _tail as chernoff
from protocols.randomness.keystream import Keyring
from protocols.scheme import Scheme
from tests.helpers.enumeration import answers, survey_distribution
from tests.helpers.surveys import of_size, scheme_with

Law = dict[tuple[int, ...], float]
MEMOS = {"eps_inf": 4.0, "eps_1": 2.0}


def asked(k: int, mechanism: str, **terms: Any) -> Scheme:
    return scheme_with(of_size(k, mechanism=mechanism), **terms)


def central(scheme: Scheme, crowds: dict[str, list[int]], **how: Any) -> CentralLoss:
    return central_loss(scheme.guarantees, crowds, **how)


def figure(scheme: Scheme, crowd: int, periods: int = 1, **how: Any) -> float:
    found = central(scheme, {question.name: [crowd] * periods for question in scheme.questions}, **how).epsilon
    assert found is not None
    return found


def counted(rows: Iterable[Floats], shown: Callable[[int], tuple[int, ...]], size: int) -> Law:
    """The law of what is published if each device sends outputs with these chances: the sum of what each shows."""
    law: Law = {(0,) * size: 1.0}
    for row in rows:
        after: Law = defaultdict(float)
        for counts, chance in law.items():
            for output in np.flatnonzero(row):
                after[tuple(map(sum, zip(counts, shown(output), strict=True)))] += chance * row[output]
        law = after
    return law


def delta_of(first: Law, second: Law, eps: float) -> float:
    return sum(max(0.0, chance - exp(eps) * second.get(counts, 0.0)) for counts, chance in first.items())


def epsilon_of(delta_at: Callable[[float], float], delta: float) -> float:
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return low


def all_outputs(size: int) -> Callable[[int], tuple[int, ...]]:
    unit = np.eye(size, dtype=int).tolist()
    return lambda output: tuple(unit[output])


ONE_SHOT = [("grr", 2, 1.0), ("grr", 3, 2.0), ("grr", 5, 0.5), ("oue", 2, 1.0), ("oue", 3, 1.0), ("sue", 3, 2.0),
            ("geometric", 3, 0.4), ("geometric", 4, 0.3), ("olh", 3, 1.0)]  # fmt: skip


@pytest.mark.parametrize(("mechanism", "k", "eps"), ONE_SHOT)
@pytest.mark.parametrize("crowd", [2, 6])
def test_no_reader_of_all_reports_in_any_order_learns_more_than_the_walks_say(
    mechanism: str, k: int, eps: float, crowd: int
) -> None:
    scheme = asked(k, mechanism, eps=eps)
    table = survey_distribution(scheme, 1)
    walks = walks_of(scheme.questions[0], crowd, "report")
    for others in {(0,) * (crowd - 1), (k - 1,) * (crowd - 1), tuple(i % k for i in range(crowd - 1))}:
        crowded = counted(table[list(others)], all_outputs(table.shape[1]), table.shape[1])
        for one, other in combinations(range(k), 2):
            laws = [_with(crowded, table[value]) for value in (one, other)]
            for share in (0.2, 0.6):
                assert delta_of(*laws, share * eps) <= walks.delta(share * eps) * (1 + 1e-9)


def _with(crowded: Law, row: Floats) -> Law:
    """What is published if one more device sends outputs with these chances."""
    law: Law = defaultdict(float)
    for counts, chance in crowded.items():
        for output, own in enumerate(row):
            law[*counts[:output], counts[output] + 1, *counts[output + 1 :]] += chance * own
    return law


@pytest.mark.parametrize(
    ("mechanism", "sizes"), [("grr", (2, 3)), ("grr-r", (3, 2)), ("oue-r", (2, 2)), ("oue-z", (2, 2))]
)
def test_no_reader_of_counts_learns_more_where_the_other_attribute_is_fake(
    mechanism: str, sizes: tuple[int, int]
) -> None:
    attributes = [of_size(k, name, mechanism=mechanism) for k, name in zip(sizes, "ab", strict=True)]
    scheme = scheme_with(*attributes, solution="rs+fd", eps=1.0)
    (truth, _), (other, fake) = (answers(question, 1, False) for question in scheme.questions)
    table, crowd = survey_distribution(scheme, 1), 4
    assert fake is not None
    unit, width = np.eye(truth.shape[1] + other.shape[1], dtype=int), other.shape[1]

    def marginal(output: int) -> tuple[int, ...]:
        return tuple((unit[output // width] + unit[truth.shape[1] + output % width]).tolist())

    others = [table[0, 0], table[-1, -1], table[0, -1]]
    laws = [counted([*others, np.outer(truth[value], fake).ravel()], marginal, len(unit)) for value in (0, 1)]
    assert epsilon_of(partial(delta_of, *laws), 1e-8) <= central(scheme, {"a": [crowd], "b": [crowd]}).by_attribute["a"]


def test_the_bound_is_near_the_best_attack_and_the_formula_of_two_counts_is_none() -> None:
    noise = grr(3, 1.0)
    rows = np.full((3, 3), noise.q) + noise.gain * np.eye(3)
    crowded = counted([rows[2]] * 39, all_outputs(3), 3)
    attack = epsilon_of(partial(delta_of, _with(crowded, rows[0]), _with(crowded, rows[1])), 1e-3)
    assert attack <= symbols(40, 3, noise, noise.q, (48, 32)).epsilon(1e-3) <= 1.1 * attack
    noise, crowd = grr(5, 0.5), 7
    rows = np.full((5, 5), noise.q) + noise.gain * np.eye(5)
    two = [noise.q, noise.q, 1 - 2 * noise.q]  # of the others only what does not depend on their values
    counts = counted([np.array(two)] * (crowd - 1), all_outputs(3), 3)
    rest = 1 - noise.p - noise.q
    claimed = delta_of(
        *(_with(counts, np.array([*pair, rest])) for pair in ((noise.p, noise.q), (noise.q, noise.p))), 0.4
    )
    attacks = []
    for others in product(range(5), repeat=2):
        crowded = counted([rows[others[i % 2]] for i in range(crowd - 1)], all_outputs(5), 5)
        attacks.append(delta_of(_with(crowded, rows[0]), _with(crowded, rows[1]), 0.4))
    assert claimed < max(attacks) <= symbols(crowd, 5, noise, noise.q, (48, 32)).delta(0.4)


def test_coarser_bins_smaller_crowds_more_budget_and_more_periods_never_give_less() -> None:
    (question,) = asked(5, "grr", eps=2.0).questions
    by_bins = [walks_of(question, 3000, "report", bins) for bins in ((96, 64), (48, 32), (24, 16), (6, 4))]
    by_crowd = [walks_of(question, crowd, "report") for crowd in (100_000, 3000, 300, 30)]
    for rising in (by_bins, by_crowd):
        found = [walks.epsilon(1e-8) for walks in rising]
        assert len(found) == 4 and found == sorted(found) and found[0] < found[-1]
    for rising in (
        [figure(asked(5, "l-grr", eps_inf=2 * eps, eps_1=eps), 3000) for eps in (0.01, 0.5, 1.0, 2.0)],
        [figure(asked(5, "l-grr", **MEMOS), 3000, days) for days in (1, 2, 7, 60)],
    ):
        assert rising == sorted(rising) and rising[0] < rising[-1]
    assert figure(asked(5, "l-grr", eps_inf=0.02, eps_1=0.01), 3000) < 0.001
    assert figure(asked(5, "l-grr", **MEMOS), 1, relation="any") == 2
    assert figure(asked(5, "l-grr", **MEMOS), 1, 300) == 4


@pytest.mark.parametrize(("n", "share"), [(1, 0.3), (60, 0.5), (5000, 1e-4), (40_000, 0.999), (10**6, 0.02)])
def test_chances_of_numbers_of_messages_are_those_of_scipy_far_into_the_tails(n: int, share: float) -> None:
    first, chances = binomial(n, share)
    law, numbers = stats.binom(n, share), first + np.arange(len(chances))
    assert law.cdf(first - 1) + law.sf(numbers[-1]) < 1e-19
    assert np.cumsum(chances) == pytest.approx(law.cdf(numbers), rel=1e-9, abs=1e-20)
    for chance in (1e-14, 1e-9, 0.3, 1 - 1e-6):
        assert quantile(n, share, chance) == law.ppf(chance)


def test_two_releases_together_are_above_their_exact_product_and_losses_rounded_down_are_not() -> None:
    walks = symbols(30, 3, grr(3, 1.0), grr(3, 1.0).q, (1000, 1000))
    first: Law = defaultdict(float)
    for weight, t, scale in zip(walks.weights, walks.steps.tolist(), walks.scale, strict=True):
        for ups in range(t + 1):
            tilt = (2 * ups - t) / scale
            loss = 2 * np.arctanh(tilt) if tilt < 1 else inf
            first[loss,] += weight * exp(log(comb(t, ups)) - t * log(2)) * (1 + tilt)
    values, chances = np.array([value for (value,) in first]), np.array(list(first.values()))
    eps, step = 0.8, walks.epsilon(1e-6) / 1600
    sums, products = np.add.outer(values, values), np.outer(chances, chances)
    exact = float((products * -np.expm1(np.minimum(eps - sums, 0))).sum())
    assert exact <= together([(losses_of(walks, step), 2)]).delta(eps) <= 1.02 * exact
    down = np.floor(np.clip(values / step, -20_000, 20_000)).astype(int) + 20_000
    wrong = Losses(step, -20_000, np.bincount(down, chances), walks.lost)
    assert together([(wrong, 2)]).delta(eps) < exact
    small = losses_of(walks, step * 80)
    direct = np.convolve(np.convolve(small.mass, small.mass), small.mass)
    by_hand = Losses(small.step, 3 * small.first, direct, 3 * small.infinite)
    assert by_hand.delta(eps) <= together([(small, 3)]).delta(eps) <= by_hand.delta(eps) + 1e-9


def test_a_thousand_periods_are_finite_and_above_the_gaussian_limit() -> None:
    noise, crowd, times = grr(10, 1.5), 1_000_000, 1000
    mu = sqrt(times * 2 * noise.gain**2 / (noise.q * crowd))

    def normal(x: float) -> float:
        return (1 + erf(x / sqrt(2))) / 2

    found = figure(asked(10, "grr", eps=1.5), crowd, times)
    assert normal(mu / 2 - found / mu) - exp(found) * normal(-mu / 2 - found / mu) < 1e-8
    assert found < 1


def histories(first: Flip, second: Flip, *values: int) -> Floats:
    """The chances of two bits reported in two periods, one memo for each value."""
    memo = np.array([[first.p, first.q], [first.q, first.p]])  # [value, memo]
    report = np.array([[second.p, second.q], [second.q, second.p]])
    if values[0] == values[1]:
        return np.einsum("m,ma,mb->ab", memo[values[0]], report, report)
    return np.outer(memo[values[0]] @ report, memo[values[1]] @ report)


def test_figures_hold_against_who_knows_memos_and_those_of_one_report_do_not() -> None:
    crowd, delta = 100, 1e-4
    scheme = asked(2, "l-grr", eps_inf=2.0, eps_1=1.9)
    first, second = scheme.questions[0].mechanism.first, scheme.questions[0].mechanism.second
    assert isinstance(first, Flip) and isinstance(second, Flip)
    one_shot = walks_of(scheme.questions[0], crowd, "report").epsilon(delta)
    memo_known = counted([np.array([second.p, second.q])] * (crowd - 1), all_outputs(2), 2)  # seen often before
    report = first.then(second)
    laws = [_with(memo_known, np.array(row)) for row in ((report.p, report.q), (report.q, report.p))]
    assert one_shot * 1.3 < epsilon_of(partial(delta_of, *laws), delta) <= figure(scheme, crowd, delta=delta)
    for budgets, beaten in (((2.0, 1.9), True), ((4.0, 2.0), False)):
        scheme = asked(2, "l-grr", eps_inf=budgets[0], eps_1=budgets[1])
        first, second = scheme.questions[0].mechanism.first, scheme.questions[0].mechanism.second
        assert isinstance(first, Flip) and isinstance(second, Flip)
        worst = {"constant": 0.0, "any": 0.0}
        for ones in (0, (crowd - 1) // 2):
            law = np.zeros((crowd + 1, crowd + 1))
            law[0, 0] = 1.0
            for device in range(crowd - 1):
                law = _shifted(law, histories(first, second, *(int(device < ones),) * 2))
            pairs = list(product((0, 1), repeat=2))
            released = {pair: _shifted(law, histories(first, second, *pair)) for pair in pairs}
            for one, other in product(pairs, repeat=2):
                relation = "constant" if one in ((0, 0), (1, 1)) and other in ((0, 0), (1, 1)) else "any"
                attack = epsilon_of(partial(_delta_of_tables, released[one], released[other]), delta)
                worst[relation] = max(worst[relation], attack)
        assert worst["constant"] <= figure(scheme, crowd, 2, delta=delta)
        assert max(worst.values()) <= figure(scheme, crowd, 2, delta=delta, relation="any")
        one_report = symbols(crowd, 2, first.then(second), first.then(second).q, (48, 32))
        twice = together([(losses_of(one_report, 0.002), 2)]).epsilon(delta, 10.0)
        assert (worst["any"] > twice) == beaten


def _shifted(law: Floats, bits: Floats) -> Floats:
    moved = law * bits[0, 0]
    moved[1:] += law[:-1] * bits[1, 0]
    moved[:, 1:] += law[:, :-1] * bits[0, 1]
    moved[1:, 1:] += law[:-1, :-1] * bits[1, 1]
    return np.asarray(moved)


def _delta_of_tables(first: Floats, second: Floats, eps: float) -> float:
    return float(np.maximum(first - exp(eps) * second, 0).sum())


@pytest.mark.parametrize("mechanism", ["grr", "oue", "dbitflip", "loloha"])
def test_a_memo_that_is_sent_has_no_figure_beside_other_periods_and_a_difference_shows_it(mechanism: str) -> None:
    scheme = asked(4, mechanism, eps_inf=2.0)
    for periods in (1, 2):
        found = central(scheme, {"a": [1000] * periods})
        assert found.epsilon is None and found.why is not None and "memo" in found.why
    (question,) = scheme.questions
    encoding, draws = question.mechanism.encoding, Keyring(bytes(32)).draws(("t",), np.arange(50, dtype=np.uint64), 0)
    traits = encoding.traits(draws)
    memos = question.mechanism.memoise(encoding.cells(np.arange(50) % 4, traits), draws)
    sent = encoding.finish(memos, traits)
    days = [encoding.count(column, np.zeros(len(column), dtype=np.int64), 1) for column in (sent, sent[1:], sent[:1])]
    assert (days[0] - days[1] == days[2]).all()


def test_a_figure_is_of_the_smallest_crowd_without_forged_answers_noise_and_what_is_suppressed() -> None:
    scheme = scheme_with(of_size(3, "a", mechanism="l-grr"), of_size(3, "b", mechanism="l-grr"), **MEMOS)
    found = central(scheme, {"a": [3250] * 7, "b": [900] * 7})
    assert found.crowd == 900 and found.epsilon == found.by_attribute["b"] == figure(scheme, 900, 7)
    suppressed = central(scheme, {"a": [3250] * 7, "b": [0] * 7})
    assert suppressed.crowd == 3250 and suppressed.by_attribute == {"a": 0.756} and suppressed.epsilon == 0.756
    assert central(scheme, {"a": [3250] * 6 + [0]}).epsilon == figure(scheme, 3250, 6)
    assert figure(scheme, 3250, 7, forged=0.1) == figure(scheme, 2925, 7) == 0.799
    many = central(scheme, {"a": list(range(3000, 3100, 2))}).epsilon  # rounded down to classes
    assert many is not None and figure(scheme, 3098, 50) <= many <= figure(scheme, 2970, 50)
    noised = scheme_with(of_size(3, mechanism="l-grr"), presence_epsilon=5.0, **MEMOS)
    assert figure(asked(3, "l-grr", **MEMOS), 3250) < figure(noised, 3250) < 0.3
    flags = scheme_with(of_size(3, mechanism="l-grr"), presence_epsilon=1.0, visitors="calendar", **MEMOS)
    assert flags.presence is not None
    drawn = np.random.default_rng(1).laplace(scale=flags.presence.answers_scale(), size=50_000)
    assert np.quantile(drawn, 0.99) <= noise_on_answers(flags.guarantees, 0.01)
    tiny = scheme_with(of_size(3, mechanism="l-grr"), presence_epsilon=0.01, **MEMOS)
    assert tiny.presence is not None and figure(tiny, 20) <= ceil(2000 * tiny.presence.supports_epsilon) / 1000


FIGURES: list[tuple[Scheme, int, Sequence[int], Sequence[float], Sequence[float]]] = [
    (asked(3, "l-grr", **MEMOS), 3250, (1, 7), (0.271, 0.756), (0.271, 0.787)),
    (asked(10, "l-grr", **MEMOS), 3250, (1, 7), (0.204, 0.58), (0.204, 0.663)),
    (asked(37, "l-osue", **MEMOS), 3250, (1, 7), (0.22, 0.712), (0.22, 3.37)),
    (asked(10, "l-grr", eps_inf=3.0, eps_1=1.5), 10**6, (7, 365), (0.0168, 0.14), (0.026, 0.209)),
    (asked(10, "grr", eps=1.5, one_in=7), 142_857, (7, 30), (0.015, 0.0349), (0.015, 0.0349)),
]


@pytest.mark.parametrize(("scheme", "crowd", "periods", "constant", "any_two"), FIGURES)
def test_figures_of_the_festival_and_of_telemetry(
    scheme: Scheme, crowd: int, periods: Sequence[int], constant: Sequence[float], any_two: Sequence[float]
) -> None:
    assert [figure(scheme, crowd, times) for times in periods] == list(constant)
    assert [figure(scheme, crowd, times, relation="any") for times in periods] == list(any_two)


MANY = [3000 + 37 * (day % 40) for day in range(1000)]  # forty numbers of answers, of more than one class of 1 %


def counting(monkeypatch: pytest.MonkeyPatch, *names: str) -> Counter[str]:
    """How often each of these functions of the figure is called."""
    calls: Counter[str] = Counter()

    def counted_call(name: str) -> None:
        own = getattr(figures, name)

        def call(*given: Any) -> Any:
            calls[name] += 1
            return own(*given)

        monkeypatch.setattr(figures, name, call)

    for name in names:
        counted_call(name)
    return calls


def test_a_composition_ends_where_the_local_bound_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counting(monkeypatch, "together", "losses_of")
    reached = central(asked(10, "l-grr", **MEMOS), {"a": [n // 10 for n in MANY]})
    assert reached.epsilon == 4.0 == reached.by_attribute["a"]
    assert (calls["together"], calls["losses_of"]) == (1, 1), "the smallest crowd's periods are enough"
    calls.clear()
    below = central(asked(10, "l-grr", eps_inf=1.0, eps_1=0.1), {"a": MANY})
    assert below.epsilon is not None and below.epsilon < 1
    classes = calls["losses_of"] - sum(2**step for step in range(calls["together"] - 1))
    assert classes > 20 and calls["together"] == 1 + ceil(log2(classes)), "of 1, 2, 4 .. classes, and of all"


def test_more_periods_of_the_same_numbers_of_answers_take_no_more_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []
    for periods in (40, 4000):
        calls = counting(monkeypatch, "together", "losses_of")
        central(asked(10, "l-grr", eps_inf=1.0, eps_1=0.02), {"a": (MANY * 4)[:periods]})
        steps.append(dict(calls))
        monkeypatch.undo()
    assert steps[0] == steps[1] and steps[0]["together"] > 1


@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-6])
def test_releases_together_never_tell_less_than_some_of_them(delta: float) -> None:
    """By enumeration of the outcomes of up to four releases of two laws, and of what is computed on a grid."""
    first, second = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.35, 0.45])
    other, further = np.array([0.9, 0.1, 0.0]), np.array([0.7, 0.1, 0.2])  # of the third outcome one law is certain
    laws, exact = (np.ones(1), np.ones(1)), list[float]()
    for one, two in ((first, second), (other, further), (second, first), (first, second)):
        laws = np.outer(laws[0], one).ravel(), np.outer(laws[1], two).ravel()
        exact.append(epsilon_of(partial(_delta_of_tables, *laws), delta))
    assert exact == sorted(exact) and exact[0] < exact[-1]
    walks = symbols(12, 3, grr(3, 1.0), grr(3, 1.0).q, (48, 32))
    on_a_grid = [together([(losses_of(walks, 0.01), times)]).epsilon(delta, 20.0) for times in range(1, 6)]
    assert on_a_grid == sorted(on_a_grid) and on_a_grid[0] < on_a_grid[-1]
    parts = [(losses_of(symbols(crowd, 3, grr(3, 1.0), grr(3, 1.0).q, (48, 32)), 0.01), 2) for crowd in (12, 30, 90)]
    more = [together(parts[:some]).epsilon(delta, 20.0) for some in (1, 2, 3)]
    assert more == sorted(more)


def test_the_search_for_the_best_rate_finds_what_a_scan_of_all_rates_finds() -> None:
    cases = [(symbols(crowd, 3, grr(3, eps), grr(3, eps).q, (48, 32)), times)
             for crowd in (1, 20, 3000) for eps in (0.1, 2.0) for times in (1, 30, 3000)]  # fmt: skip
    for walks, times in cases:
        parts = [(losses_of(walks, walks.spread / 100), times)]
        (losses, _), number = parts[0], np.arange(len(parts[0][0].mass)) + parts[0][0].first
        for sign in (1, -1):
            scanned = [
                (times * log(losses.mass @ np.exp(sign * rate * number)) - log(CUT)) / rate
                for rate in RATES
                if rate * np.abs(number).max() < 700
            ]
            assert chernoff(parts, sign) == pytest.approx(min(scanned), rel=1e-12)


def test_the_budget_for_a_figure_keeps_it_and_a_little_more_does_not() -> None:
    def at(eps_1: float) -> Any:
        return central(asked(10, "l-grr", eps_inf=2 * eps_1, eps_1=eps_1), {"a": [3250] * 7})

    found = eps_1_for(at, 0.5)
    assert found == 1.83 and at(found).epsilon <= 0.5 < at(found + 0.02).epsilon
    assert eps_1_for(at, 1e-6) is None


def test_where_there_is_no_figure_there_is_a_reason_and_never_a_number() -> None:
    place = {"name": "a", "geo": {"level": 1.1, "radius": "400m"}}
    place["grid"] = {"at": [47, 6], "cell": "500m", "columns": 6, "rows": 4}
    for found in (central(scheme_with(place), {"a": [10_000]}), central(asked(5, "l-osue", **MEMOS), {})):
        assert found.epsilon is None and found.why


def test_who_collects_shuffled_bits_of_several_periods_has_no_figure_because_nobody_hides_a_vector() -> None:
    """Of 3,250 devices, how many send what does not depend on their memo: bits of all values at once, or a symbol."""
    rounds = [asked(37, name, **MEMOS).questions[0].mechanism.second for name in ("l-osue", "l-grr")]
    bits, symbols = (3250 * (1 - flip.gain) ** power for flip, power in zip(rounds, (37, 1), strict=True) if flip)
    assert bits < 0.01 and symbols > 100
    terms = {"epsilon": 0.1, "delta": 1e-8, "relation": "constant", "periods": 2, "crowd": 3250}
    assert CentralLoss.model_validate(terms).release == "totals"
    with pytest.raises(ValidationError, match="release"):
        CentralLoss.model_validate({**terms, "release": "reports"})
