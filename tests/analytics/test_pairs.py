"""Tables of pairs: the fit is unbiased and more exact, intervals cover, and the consistent table agrees with both."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from analytics.estimation.consistent import norm_sub
from analytics.estimation.estimates import Estimates
from analytics.estimation.pairs import Margin, fitted_pairs, two_way_norm_sub
from analytics.estimation.ratios import exact
from analytics.mobility import Answers
from protocols.question import Question
from tests.helpers.surveys import scheme_with

Floats = NDArray[np.float64]
SHAPE = (3, 4)
RUNS, PEOPLE = 300, 30_000
TABLE = np.array([[0.30, 0.10, 0.02, 0.05], [0.02, 0.15, 0.08, 0.05], [0.0, 0.03, 0.14, 0.06]])


def test_the_fit_is_that_of_generalised_least_squares() -> None:
    random = np.random.default_rng(1)
    table, rows, columns = random.normal(size=SHAPE), random.normal(size=3), random.normal(size=4)
    own, of_rows, of_columns = 0.02, 0.003, 0.007
    adds_rows, adds_columns = np.kron(np.eye(3), np.ones(4)), np.kron(np.ones(3), np.eye(4))
    precision = np.eye(12) / own + adds_rows.T @ adds_rows / of_rows + adds_columns.T @ adds_columns / of_columns
    told = table.ravel() / own + adds_rows.T @ rows / of_rows + adds_columns.T @ columns / of_columns
    shares = Estimates(table.ravel(), np.full(12, own**0.5), np.zeros(12), np.ones(12))
    margins = Margin(rows, of_rows, norm_sub(rows)), Margin(columns, of_columns, norm_sub(columns))
    found = fitted_pairs(shares, own, SHAPE, *margins)
    assert found.adjusted == pytest.approx(np.linalg.solve(precision, told))
    assert found.error**2 == pytest.approx(np.diag(np.linalg.inv(precision)))


@pytest.mark.parametrize("seed", range(5))
def test_norm_sub_in_both_directions_is_the_nearest_table_with_these_sums(seed: int) -> None:
    """Checked by the conditions that only the nearest one fulfils: what is cut would have been below 0."""
    random = np.random.default_rng(seed)
    shape = (int(random.integers(2, 9)), int(random.integers(2, 9)))
    table = random.normal(1 / (shape[0] * shape[1]), 0.1, shape)
    rows, columns = (norm_sub(random.normal(1 / size, 0.2, size)) for size in shape)
    found = two_way_norm_sub(table, rows, columns)
    assert found.min() >= 0
    assert found.sum(axis=1) == pytest.approx(rows, abs=1e-6) and found.sum(axis=0) == pytest.approx(columns, abs=1e-6)
    for _ in range(200):  # no small step along the tables with these sums comes nearer
        i, j = random.choice(shape[0], 2, replace=False), random.choice(shape[1], 2, replace=False)
        step = np.zeros(shape)
        step[i[0], j[0]] = step[i[1], j[1]] = 1e-4
        step[i[0], j[1]] = step[i[1], j[0]] = -1e-4
        if (found + step).min() >= 0:
            assert ((found + step - table) ** 2).sum() >= ((found - table) ** 2).sum() - 1e-9


def counted(question: Question, people: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Support counts of so many people with each value: as the exact channel draws them."""
    noise, k = question.mechanism.one_report, question.k
    if question.mechanism.encoding.exclusive:
        chances = np.full((k, k), noise.q) + np.eye(k) * (noise.p - noise.q)
        return np.sum([random.multinomial(n, row) for n, row in zip(people, chances, strict=True)], axis=0)
    return random.binomial(people, noise.p) + random.binomial(people.sum() - people, noise.q)


@pytest.mark.parametrize("mechanism", ["l-osue", "l-grr"])
def test_estimates_of_pairs_are_unbiased_and_their_intervals_cover(mechanism: str) -> None:
    """Failure would look like: intervals that cover less than they say, or a fit that pulls pairs towards margins."""
    sizes = dict(zip("ab", SHAPE, strict=True))
    attributes = [{"name": name, "values": [f"{name}{i}" for i in range(k)]} for name, k in sizes.items()]
    cross = {"of": ["a", "b"], "share": 0.5, "mechanism": mechanism}
    scheme = scheme_with(*attributes, eps_inf=3, eps_1=2, crosses=[cross])
    random = np.random.default_rng(7)
    whole = np.floor(TABLE * PEOPLE + 0.5).astype(np.int64)
    assert whole.sum() == PEOPLE
    truth = TABLE.ravel()
    raw, adjusted, covered, fitted = ([] for _ in range(4))
    axes = scheme.question("a*b").axes
    for _ in range(RUNS):
        drawn = random.multivariate_hypergeometric(whole.ravel(), PEOPLE // 2)  # who is asked about pairs
        rest = whole.ravel() - drawn
        first = random.multivariate_hypergeometric(rest, PEOPLE // 4)
        tables = {"a*b": drawn, "a": first.reshape(SHAPE).sum(axis=1), "b": (rest - first).reshape(SHAPE).sum(axis=0)}
        answers = {
            q.name: Answers(
                q.channel, int(tables[q.name].sum()), counted(q, tables[q.name], random), exact(np.array(PEOPLE)), None
            )
            for q in scheme.questions
        }
        shares = answers["a*b"].shares
        columns = answers["a*b"].fitted(axes, [answers["a"], answers["b"]])
        raw.append(shares.value - truth)
        adjusted.append(columns["adjusted"] - truth)
        covered.append((shares.low <= truth) & (truth <= shares.high))
        fitted.append(np.abs(columns["adjusted"] - truth) <= 1.96 * columns["adjusted_error"])
        consistent = columns["consistent"].reshape(SHAPE)
        assert consistent.min() >= 0 and consistent.sum() == pytest.approx(1)
        for axis, name in ((1, "a"), (0, "b")):
            assert consistent.sum(axis=axis) == pytest.approx(answers[name].consistent.value, abs=1e-3)
    for errors in (np.array(raw), np.array(adjusted)):
        assert np.abs(errors.mean(axis=0) / (errors.std(axis=0) / RUNS**0.5)).max() < 4.2
    assert 0.93 < np.mean(covered) < 0.97
    assert 0.93 < np.mean(fitted) < 0.97
    assert np.mean(np.square(adjusted)) < 0.9 * np.mean(np.square(raw))


def test_a_margin_that_is_not_published_is_not_used() -> None:
    shares = Estimates(np.array([0.5, 0.2, 0.4, -0.1]), np.full(4, 0.1), np.zeros(4), np.ones(4))
    found = fitted_pairs(shares, 0.01, (2, 2), None, None)
    assert found.adjusted == pytest.approx(shares.value) and found.error == pytest.approx(shares.error)
    assert found.consistent == pytest.approx(norm_sub(shares.value))
