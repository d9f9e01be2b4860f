"""Tables of pairs that agree with the tables of both attributes (PROTOCOLS 4).

A cross and its two attributes are answered by different devices, so there are three independent unbiased tables of the
same people. Two tables are made of them:

    adjusted      the least squares fit to all three with their known variances. It is linear in the counts, so it is
                  unbiased, too, and has the smaller errors.
    consistent    Norm-Sub in both directions: the table nearest to the adjusted one that is non-negative and whose rows
                  and columns sum to the consistent histograms of the attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.estimation.consistent import norm_sub
from analytics.estimation.estimates import Estimates
from analytics.estimation.votes import Floats

ROUNDS = 500
EXACT = 1e-9  # by how much columns may still miss their sums


@dataclass(frozen=True, eq=False)
class Margin:
    """The shares of one attribute: unbiased with the variance of each, known before any count, and consistent."""

    value: Floats
    variance: float
    consistent: Floats


@dataclass(frozen=True, eq=False)
class Pairs:
    """Shares of all pairs, row by row: adjusted, with standard errors, and consistent."""

    adjusted: Floats
    error: Floats
    consistent: Floats


def fitted_pairs(
    estimates: Estimates, variance: float, shape: tuple[int, int], rows: Margin | None, columns: Margin | None
) -> Pairs:
    """The tables of a cross from its unbiased shares, each with this known variance. An absent margin is not used.

    Errors of adjusted shares are those of the estimates less what the margins save.

    >>> rows = Margin(np.array([0.5, 0.5]), 1e-6, np.array([0.5, 0.5]))
    >>> shares = Estimates(np.array([0.4, 0.2, 0.5, -0.1]), np.full(4, 0.1), np.zeros(4), np.ones(4))
    >>> found = fitted_pairs(shares, 0.01, (2, 2), rows, None)
    >>> found.adjusted.round(3).tolist(), found.error.round(3).tolist(), found.consistent.round(3).tolist()
    ([0.35, 0.15, 0.55, -0.05], [0.071, 0.071, 0.071, 0.071], [0.35, 0.15, 0.5, 0.0])
    """
    table = estimates.value.reshape(shape)
    adjusted, fitted = _adjusted(table, variance, rows, columns)
    sums = (None if margin is None else margin.consistent for margin in (rows, columns))
    error = np.sqrt(np.maximum(estimates.error**2 - (variance - fitted), fitted / 4))
    return Pairs(adjusted.ravel(), error, two_way_norm_sub(adjusted, *sums).ravel())


def _adjusted(table: Floats, variance: float, rows: Margin | None, columns: Margin | None) -> tuple[Floats, float]:
    """The least squares fit, and the variance of each of its cells.

    Errors of one table are alike and independent, so the fit falls apart into four: the mean of all cells, what rows
    and what columns deviate from it, and the rest, of which only the cross knows. Each part is the average of what the
    tables say about it, weighted by the inverses of their variances.
    """
    m, k = table.shape
    own = 1 / variance
    of_rows, of_columns = (
        0.0 if margin is None else size / margin.variance for margin, size in ((rows, k), (columns, m))
    )
    means = table.mean(axis=1), table.mean(axis=0)
    given = (
        means[0] if rows is None else rows.value / k,
        means[1] if columns is None else columns.value / m,
    )
    weights = np.array([own, of_rows, of_columns])
    mean = float(weights @ [table.mean(), given[0].mean(), given[1].mean()] / weights.sum())
    by_row, by_column = (
        (own * (seen - seen.mean()) + weight * (told - told.mean())) / (own + weight)
        for seen, told, weight in zip(means, given, (of_rows, of_columns), strict=True)
    )
    rest = table - means[0][:, None] - means[1][None, :] + table.mean()
    parts = 1 / weights.sum() + (m - 1) / (own + of_rows) + (k - 1) / (own + of_columns) + (m - 1) * (k - 1) / own
    return mean + by_row[:, None] + by_column[None, :] + rest, float(parts / (m * k))


def two_way_norm_sub(table: Floats, rows: Floats | None, columns: Floats | None) -> Floats:
    """The nearest non-negative table that sums to 1, with these sums of rows and of columns as far as they are given.

    An amount is subtracted from each row and one from each column, and what is below 0 is cut. The amounts of rows are
    found for given ones of columns, then the other way round, until the sums are right.

    >>> table = np.array([[0.5, 0.2], [-0.1, 0.4]])
    >>> two_way_norm_sub(table, np.array([0.6, 0.4]), np.array([0.5, 0.5])).round(3).tolist()
    [[0.5, 0.1], [0.0, 0.4]]
    >>> two_way_norm_sub(table, np.array([0.6, 0.4]), None).round(3).tolist()
    [[0.45, 0.15], [0.0, 0.4]]
    """
    if rows is None and columns is None:
        return norm_sub(table.ravel()).reshape(table.shape)
    of_rows, of_columns = np.zeros(len(table)), np.zeros(table.shape[1])
    for _ in range(ROUNDS):
        if rows is not None:
            of_rows = _amounts(table - of_columns[None, :], rows)
        if columns is not None:
            of_columns = _amounts((table - of_rows[:, None]).T, columns)
        found = np.maximum(table - of_rows[:, None] - of_columns[None, :], 0)
        if rows is None or columns is None or np.abs(found.sum(axis=1) - rows).max() < EXACT:
            break
    return found


def _amounts(table: Floats, sums: Floats) -> Floats:
    """What to subtract from each row, so that with everything below 0 cut it has its sum; a row of sum 0 loses all."""
    descending = -np.sort(-table, axis=1)
    ranks = np.arange(1, table.shape[1] + 1)
    excess = (np.cumsum(descending, axis=1) - sums[:, None]) / ranks
    kept = np.maximum(np.sum(descending > excess, axis=1), 1)
    return np.where(sums > 0, excess[np.arange(len(table)), kept - 1], descending[:, 0])
