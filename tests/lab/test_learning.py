"""Learning from tables with known noise: floors are right, trees are found, records follow, classifiers learn."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from analytics.estimation import estimate
from lab.evaluation.measuring import respondents
from lab.learning.classifier import auc, gaps, naive_bayes
from lab.learning.comparing import CROSSES, MAJORITY, People, _collected, compare, survey
from lab.learning.model import (
    LEVEL,
    Measured,
    Model,
    Shares,
    agree,
    association,
    counted,
    distances,
    draw_records,
    fit,
    mutual_information,
    nearest,
)
from protocols.scheme import Scheme
from tests.helpers.crowd import counts_of, scheme_of

A, B = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.2, 0.1])
AB = [("a", "b")]
JOINED = np.outer(A, B) + 0.03 * np.outer([1, -1, 0], [1, -1, 1, -1])


def noisy(table: np.ndarray, deviation: float, random: np.random.Generator) -> Shares:
    return Shares(table + deviation * random.standard_normal(table.shape), np.full(table.shape, deviation**2))


@pytest.mark.parametrize("name", ["grr", "oue"])
def test_the_noise_floor_is_what_devices_with_independent_attributes_give(name: str) -> None:
    n, runs, random = 5_000, 40, np.random.default_rng(3)
    scheme = scheme_of(f"{{name: a, range: {{last: 11}}, mechanism: {name}}}", "eps: 1.5")
    informations, chances, floors = [], [], []
    for run in range(runs):
        values = random.choice(12, n, p=np.outer(A, B).ravel())
        counts, _ = counts_of(scheme, "a", values, np.zeros(n, dtype=np.int64), period=run)
        found = estimate(counts[0], n, scheme.questions[0].channel)
        one = association(Shares(found.value.reshape(3, 4), found.error.reshape(3, 4) ** 2), A, B)
        informations.append(one.information)
        floors.append(one.noise_floor)
        chances.append(one.chance_if_independent)
    error = np.std(informations) / np.sqrt(runs)
    assert abs(np.mean(informations) - np.mean(floors)) < 4 * error
    assert np.mean(np.array(chances) <= LEVEL) <= 0.2  # 5 % expected; 9 of 40 are less likely than 1 in 10,000


@pytest.mark.long(part="statistics")
def test_the_test_of_independence_is_as_often_wrong_as_it_says() -> None:
    random = np.random.default_rng(5)
    chances = [association(noisy(np.outer(A, B), 0.02, random), A, B).chance_if_independent for _ in range(300)]
    assert 0.02 < np.mean(np.array(chances) <= LEVEL) < 0.09


def test_a_dependent_pair_is_found_and_its_information_is_near_the_truth() -> None:
    random = np.random.default_rng(1)
    sums = JOINED.sum(axis=1), JOINED.sum(axis=0)
    found = [association(noisy(JOINED, 0.005, random), *sums) for _ in range(20)]
    assert all(one.dependent for one in found)
    assert np.mean([one.gain for one in found]) == pytest.approx(float(mutual_information(JOINED)), rel=0.1)


def test_tables_that_share_an_attribute_agree_about_it() -> None:
    random = np.random.default_rng(2)
    pairs = {("a", "b"): noisy(JOINED, 0.01, random), ("c", "a"): noisy(JOINED.T, 0.02, random)}
    _, found = agree(Measured({"a": 3, "b": 4, "c": 4}, {"a": noisy(A, 0.002, random)}, pairs))
    first, second = found["a", "b"].sum(axis=1), found["c", "a"].sum(axis=0)
    assert np.abs(first - second).max() < 0.003
    assert np.abs(first - A).max() < 0.006, "the table with the least noise counts most"
    assert all(np.isclose(table.sum(), 1) and table.min() >= 0 for table in found.values())


def chain(random: np.random.Generator, deviation: float) -> tuple[Measured, dict[str, np.ndarray]]:
    """a - b - c, and d by itself, all with 4 values; every pair but (a, d) is measured."""
    n = 40_000
    a = random.integers(4, size=n)
    b = np.where(random.random(n) < 0.7, a, random.integers(4, size=n))
    c = np.where(random.random(n) < 0.7, b, random.integers(4, size=n))
    people = {"a": a, "b": b, "c": c, "d": random.integers(4, size=n)}
    pairs = [("a", "b"), ("b", "c"), ("a", "c"), ("b", "d"), ("d", "c")]
    true = counted(dict.fromkeys("abcd", 4), people, pairs)
    return Measured(true.sizes, {}, {pair: noisy(s.value, deviation, random) for pair, s in true.pairs.items()}), people


def test_a_tree_follows_what_depends_and_leaves_noise_alone() -> None:
    measured, people = chain(np.random.default_rng(4), 0.005)
    model = fit(measured)
    assert set(model.edges) == {("a", "b"), ("b", "c")}
    records = draw_records(model, 40_000, seed=1)
    far = distances(records, counted(measured.sizes, people, list(measured.pairs)), model.ones)
    assert max(distance.total_variation for distance in far.values()) < 0.05
    assert far["a", "c"].total_variation_independent > 0.3, "a and c depend on each other, through b"


def test_where_no_pair_was_measured_records_are_independent() -> None:
    model = fit(Measured({"a": 3, "b": 4}, {"a": Shares(A, A * 0 + 1e-6), "b": Shares(B, B * 0 + 1e-6)}))
    records = draw_records(model, 20_000)
    table = counted({"a": 3, "b": 4}, records, AB).pairs["a", "b"].value
    assert model.edges == () and np.abs(table - np.outer(A, B)).max() < 0.01


def test_records_follow_a_table_but_for_rounding_and_are_the_same_again() -> None:
    people = {"a": np.repeat([0, 1, 2], 400), "b": np.tile([0, 0, 1, 2, 3, 3], 200)}
    measured = counted({"a": 3, "b": 4}, people, AB)
    model = Model(*agree(measured), {}, (("a", "b"),))
    records, again = draw_records(model, 600, seed=7), draw_records(model, 600, seed=7)
    assert distances(records, measured, model.ones)["a", "b"].total_variation < 12 / 600
    assert all(np.array_equal(records[name], again[name]) for name in records)


def test_suppressed_values_and_pairs_stay_suppressed() -> None:
    table = np.array([[0.4, np.nan, 0.2], [0.3, 0.05, np.nan]])
    pair = Shares(table, np.where(np.isnan(table), np.nan, 1e-6))
    single = Shares(np.array([0.5, np.nan, 0.5]), np.array([1e-6, np.nan, 1e-6]))
    model = fit(Measured({"a": 2, "b": 3, "c": 3, "d": 5}, {"c": single}, {("a", "b"): pair}))
    records = draw_records(model, 5_000)
    assert set(records) == {"a", "b", "c"}, "nothing is known about d"
    drawn = counted({"a": 2, "b": 3, "c": 3}, records, AB)
    assert drawn.pairs["a", "b"].value[0, 1] == drawn.pairs["a", "b"].value[1, 2] == 0
    assert drawn.ones["c"].value[1] == nearest(np.full((2, 2), np.nan)).sum() == 0


def labelled(n: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Two attributes that say something about the label, and two with many values that say nothing."""
    label = (random.random(n) < 0.3).astype(np.int64)
    return {
        "near": np.where(random.random(n) < 0.7, label, random.integers(3, size=n)),
        "far": np.where(random.random(n) < 0.3, label * 2, random.integers(4, size=n)),
        "noise": random.integers(20, size=n),
        "more": random.integers(30, size=n),
        "label": label,
    }


SIZES = {"near": 3, "far": 4, "noise": 20, "more": 30, "label": 2}


def test_what_noise_says_is_dropped_and_the_rest_is_shrunk() -> None:
    random = np.random.default_rng(8)
    true = counted(SIZES, labelled(60_000, random), [(name, "label") for name in SIZES if name != "label"])
    measured = Measured(SIZES, {}, {pair: noisy(s.value, 0.01, random) for pair, s in true.pairs.items()})
    found, exact = naive_bayes(measured, "label"), naive_bayes(true, "label")
    assert not {name for name, ratio in found.ratios.items() if not ratio.any()} & {"near", "far"}
    assert np.ptp(found.ratios["far"]) < np.ptp(exact.ratios["far"]) * 1.1
    people = labelled(20_000, random)
    assert auc(found.scores(people), people["label"]) > auc(exact.scores(people), people["label"]) - 0.03


def test_gaps_are_differences_between_groups() -> None:
    scores = np.log(np.array([[0.9, 0.1]] * 100 + [[0.1, 0.9]] * 100))
    labels, groups = np.repeat([0, 1, 0, 1], 50), np.repeat([0, 1], 100)
    assert gaps(scores, labels, groups, positive=1) == {"parity": 1.0, "opportunity": 1.0, "accuracy": 0.0}
    assert np.isnan(gaps(scores, labels, groups * 0, positive=1)["parity"]), "one group has no gap"


PUBLIC = {
    "fair": ("affairs", ["rate_marriage", "age", "yrs_married", "children", "religious", "educ", "occupation"]),
    "anes96": ("vote", ["TVnews", "selfLR", "ClinLR", "DoleLR", "PID", "age", "educ", "income"]),
}
"""Tables that come with statsmodels: the label (above 0 or not), and the columns that it is learnt from."""


def public(name: str, devices: int, seed: int) -> People:
    """Devices that hold records of a table, drawn with replacement from seven tenths of it; the rest is tried on."""
    label, columns = PUBLIC[name]
    frame = import_module(f"statsmodels.datasets.{name}").load_pandas().data
    random, sizes, records = np.random.default_rng(seed), {}, {}
    for column in columns:
        cuts = np.unique(np.quantile(frame[column], np.linspace(0, 1, 7)[1:-1]))
        records[column], sizes[column] = np.searchsorted(cuts, frame[column], side="right"), len(cuts) + 1
    records[label], sizes[label] = (frame[label] > 0).to_numpy().astype(np.int64), 2
    order = random.permutation(len(frame))
    answering = random.choice(order[len(order) * 3 // 10 :], devices)
    trained, tried = (
        {name: column[rows] for name, column in records.items()} for rows in (answering, order[: len(order) * 3 // 10])
    )
    return People(sizes, label, trained, tried)


@pytest.mark.long(part="statistics")
@pytest.mark.xdist_group("statsmodels")
@pytest.mark.filterwarnings("ignore")  # of the imports of statsmodels and pandas
@pytest.mark.parametrize("name", PUBLIC)
def test_naive_bayes_from_crosses_is_above_the_majority_on_public_tables(name: str) -> None:
    found = compare(public(name, 100_000, seed=1), [1.0, 2.0], alpha=None, runs=4)
    accuracies = {(one["source"], one["eps"]): one["accuracy"]["value"] for one in found}
    for eps in (1.0, 2.0):
        assert accuracies[CROSSES, eps] > accuracies[MAJORITY, None], accuracies


@pytest.mark.xdist_group("statsmodels")
@pytest.mark.filterwarnings("ignore")  # of the imports of statsmodels and pandas
@pytest.mark.parametrize("depends", [True, False])
def test_records_are_much_nearer_to_the_people_than_independent_ones_at_eps_4(depends: bool) -> None:
    """Total variation from the true tables, over all pairs. The control: people whose attributes are independent."""
    people = public("fair", 10_000, seed=3)
    if not depends:
        random = np.random.default_rng(4)
        people = replace(people, train={name: random.permutation(column) for name, column in people.train.items()})
    pairs = [(name, people.label) for name in people.features]
    true, far = counted(people.sizes, people.train, pairs), []
    for run, respondent in enumerate(respondents(Scheme(survey(people, 4.0, 0.5)), 3, seed=1)):
        model = fit(_collected(people, pairs, respondent))
        records = draw_records(model, 10_000, seed=run)
        far += [
            (one.total_variation, one.total_variation_independent)
            for one in distances(records, true, model.ones).values()
        ]
    drawn, independent = np.mean(far, axis=0)
    assert bool(drawn < 0.85 * independent) is depends, (drawn, independent)
