"""Tables of pairs: the fit is unbiased and more exact, intervals cover, and the consistent table is the nearest."""

from dataclasses import replace

import numpy as np
import pytest

from analytics.estimation.estimates import Estimates, exact
from analytics.estimation.pairs import Table, fitted_pairs, shrunk, two_way_norm_sub
from analytics.estimation.votes import norm_sub
from analytics.mobility import Answers
from protocols.arrays import Floats
from tests.analytics.test_integrity import supported
from tests.helpers.surveys import scheme_with

SHAPE = (3, 4)
RUNS, PEOPLE = 300, 30_000
TABLE = np.array([[0.30, 0.10, 0.02, 0.05], [0.02, 0.15, 0.08, 0.05], [0.0, 0.03, 0.14, 0.06]])


def table(value: Floats, variance: float) -> Table:
    """Shares whose errors are alike and independent."""
    return Table(value, variance, np.full(len(value), variance), np.zeros(len(value)))


def test_the_fit_is_that_of_generalised_least_squares() -> None:
    random = np.random.default_rng(1)
    cells, rows, columns = random.normal(size=12), random.normal(size=3), random.normal(size=4)
    own, of_rows, of_columns = 0.02, 0.003, 0.007
    adds_rows, adds_columns = np.kron(np.eye(3), np.ones(4)), np.kron(np.ones(3), np.eye(4))
    precision = np.eye(12) / own + adds_rows.T @ adds_rows / of_rows + adds_columns.T @ adds_columns / of_columns
    told = cells / own + adds_rows.T @ rows / of_rows + adds_columns.T @ columns / of_columns
    shares = Estimates(cells, np.full(12, own**0.5), np.zeros(12), np.ones(12))
    margins = table(rows, of_rows), table(columns, of_columns)
    found = fitted_pairs(shares, table(cells, own), SHAPE, *margins)[0]
    assert found.value == pytest.approx(np.linalg.solve(precision, told))
    assert found.error**2 == pytest.approx(np.diag(np.linalg.inv(precision)))


def test_errors_that_differ_and_hang_together_are_carried_through_the_fit() -> None:
    """The fit is linear, so it is tried on unit vectors: the variances follow from any covariance."""
    random = np.random.default_rng(2)
    sizes, evens = (12, 3, 4), (0.02, 0.003, 0.007)
    tables = [
        Table(np.zeros(k), even, random.uniform(0.5, 2, k) * even, random.uniform(0, 0.2, k) * even**0.5)
        for k, even in zip(sizes, evens, strict=True)
    ]
    flat = Estimates(np.zeros(12), np.ones(12), np.zeros(12), np.ones(12))
    expected = np.zeros(12)
    for which, one in enumerate(tables):
        fits = []
        for unit in np.eye(sizes[which]):
            cells, rows, columns = (replace(t, value=unit) if t is one else t for t in tables)
            fits.append(fitted_pairs(flat, cells, SHAPE, rows, columns)[0].value)
        weights, shared = np.array(fits).T, np.outer(one.shared, one.shared)
        expected += np.einsum("ij,jk,ik->i", weights, np.diag(one.own + one.shared**2) - shared, weights)
    cells, rows, columns = tables
    found = fitted_pairs(flat, cells, SHAPE, rows, columns)[0]
    assert found.error**2 == pytest.approx(expected)


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


@pytest.mark.parametrize(
    ("mechanism", "eps_1", "share"),
    [("l-osue", 2.0, 0.5), ("l-grr", 2.0, 0.5), ("l-grr", 5.0, 0.2), ("loloha", 2.0, 0.8)],
)
def test_estimates_of_pairs_are_unbiased_and_intervals_cover_every_pair(
    mechanism: str, eps_1: float, share: float
) -> None:
    """Failure would look like: intervals that cover less than they say, or a fit that pulls pairs towards margins.

    Rare pairs and frequent ones are looked at apart: with large budgets their errors differ several times.
    """
    sizes = dict(zip("ab", SHAPE, strict=True))
    attributes = [{"name": name, "values": [f"{name}{i}" for i in range(k)]} for name, k in sizes.items()]
    cross = {"of": ["a", "b"], "share": share, "mechanism": mechanism}
    scheme = scheme_with(*attributes, eps_inf=2 * eps_1, eps_1=eps_1, crosses=[cross])
    random = np.random.default_rng(7)
    whole = np.floor(TABLE * PEOPLE + 0.5).astype(np.int64)
    assert whole.sum() == PEOPLE
    truth = TABLE.ravel()
    raw, adjusted, covered, fitted, nearest, possible = ([] for _ in range(6))
    for _ in range(RUNS):
        drawn = random.multivariate_hypergeometric(whole.ravel(), round(PEOPLE * share))  # who is asked about pairs
        rest = whole.ravel() - drawn
        first = random.multivariate_hypergeometric(rest, int(rest.sum()) // 2)
        tables = {"a*b": drawn, "a": first.reshape(SHAPE).sum(axis=1), "b": (rest - first).reshape(SHAPE).sum(axis=0)}
        answers = {}
        for q in scheme.questions:
            asked, supports = int(tables[q.name].sum()), supported(q, tables[q.name], random)
            answers[q.name] = Answers(q, asked, supports, exact(np.array(PEOPLE)))
        shares = answers["a*b"].shares
        columns = answers["a*b"].fitted([answers["a"], answers["b"]])
        raw.append(shares.value - truth)
        adjusted.append(columns["adjusted"] - truth)
        covered.append((shares.low <= truth) & (truth <= shares.high))
        fitted.append((columns["adjusted_low"] <= truth) & (truth <= columns["adjusted_high"]))
        nearest.append((columns["consistent_low"] <= truth) & (truth <= columns["consistent_high"]))
        consistent = columns["consistent"].reshape(SHAPE)
        assert consistent.min() >= 0 and consistent.sum() == pytest.approx(1)
        assert (columns["consistent_low"] >= 0).all() and (columns["consistent_high"] <= 1).all()
        possible.append(columns["consistent"] - truth)
        for axis in (0, 1):
            sums = columns["adjusted"].reshape(SHAPE).sum(axis=axis)
            assert consistent.sum(axis=axis) == pytest.approx(norm_sub(sums), abs=2e-3)
    assert np.square(possible).mean() < np.square(adjusted).mean() <= np.square(raw).mean()
    for errors in (np.array(raw), np.array(adjusted)):
        assert np.abs(errors.mean(axis=0) / (errors.std(axis=0) / RUNS**0.5)).max() < 4.2
    frequent = truth > 0.1
    for which in map(np.array, (covered, fitted, nearest)):
        assert 0.93 < which.mean() < 0.97
        assert 0.92 < which[:, frequent].mean() < 0.98 and 0.92 < which[:, ~frequent].mean() < 0.98
    assert np.mean(np.square(adjusted)) < 0.95 * np.mean(np.square(raw))


def test_a_margin_that_is_not_published_is_not_used() -> None:
    shares = Estimates(np.array([0.5, 0.2, 0.4, -0.1]), np.full(4, 0.1), np.zeros(4) - 0.3, np.ones(4))
    adjusted, consistent = fitted_pairs(shares, table(shares.value, 0.01), (2, 2), None, None)
    for part in ("value", "error", "low", "high"):
        assert getattr(adjusted, part) == pytest.approx(getattr(shares, part))
    assert consistent.value.reshape(2, 2).sum(axis=1) == pytest.approx([0.7, 0.3])


def test_the_consistent_table_is_as_good_as_the_better_of_the_shares_and_the_independent_product() -> None:
    """From hardly any noise to far more than there is to see, where the control, the product alone, is far worse."""
    random, weak = np.random.default_rng(3), 0.8 * np.outer(TABLE.sum(axis=1), TABLE.sum(axis=0)) + 0.2 * TABLE
    for truth in (TABLE, weak):
        for noise in (0.005, 0.02, 0.1, 0.2):
            errors = []
            for _ in range(100):
                value = truth + noise * random.standard_normal(SHAPE)
                sums = norm_sub(value.sum(axis=1)), norm_sub(value.sum(axis=0))
                made = shrunk(value, noise**2, *sums), value, np.outer(*sums)
                errors.append([np.square(one - truth).mean() for one in made])
            ours, shares, product = np.sqrt(np.mean(errors, axis=0))
            assert ours < 0.98 * shares and ours < 1.01 * product, (noise, ours, shares, product)
            assert noise >= 0.1 or truth is weak or product > 1.1 * ours, "the product alone is far worse"
