"""Tables that agree: what several tables say about one attribute is averaged, and each is changed to say that.

An attribute is known from its own question and from the sums of every cross that has it. Each of these is unbiased, so
their average with the inverses of the variances as weights is, too, and has the smallest error. Then Norm-Sub makes the
tables non-negative, which changes their sums a little; so both steps alternate.
"""

from __future__ import annotations

import numpy as np

from analytics.estimation.consistent import norm_sub
from analytics.estimation.votes import Floats
from analytics.learning.tables import Measured, Pair, Shares, Tables

ROUNDS = 5


def nearest(shares: Floats) -> Floats:
    """Norm-Sub over all cells of a table. Suppressed cells (NaN) get nothing.

    >>> nearest(np.array([[0.7, np.nan], [0.5, -0.1]])).round(3).tolist()
    [[0.6, 0.0], [0.4, 0.0]]
    """
    flat = np.where(np.isfinite(shares), shares, -np.inf).ravel()
    if not np.isfinite(flat).any():
        return np.zeros_like(shares)
    return norm_sub(flat).reshape(shares.shape)


def agree(measured: Measured, rounds: int = ROUNDS) -> Tables:
    """Tables of all attributes that were asked, alone or in a pair, and of all pairs, made to agree.

    >>> sure, unsure = np.full(2, 1e-6), np.full((2, 2), 1e-2)
    >>> found = agree(Measured({"a": 2, "b": 2}, {"a": Shares(np.array([0.5, 0.5]), sure)},
    ...                        {("a", "b"): Shares(np.array([[0.6, 0.1], [0.1, 0.2]]), unsure)}))
    >>> found.pairs["a", "b"].round(3).tolist(), found.ones["b"].round(3).tolist()
    ([[0.5, 0.0], [0.2, 0.3]], [0.7, 0.3])
    """
    tables = dict(measured.pairs)
    for _ in range(rounds):
        ones = _ones(measured, tables)
        tables = {pair: _moved(shares, ones[pair[0]], ones[pair[1]]) for pair, shares in tables.items()}
    fitted = {pair: np.nan_to_num(shares.value) for pair, shares in tables.items()}
    return Tables(_ones(measured, tables), fitted)


def average(sources: list[Shares]) -> Floats:
    """The average of several tables of the same shares; NaN where all of them are suppressed.

    A table's weight is the inverse of its mean variance: one for each cell would depend on what was measured there.

    >>> good, bad = (Shares(np.array([p, 1 - p]), np.full(2, v)) for p, v in ((0.2, 1e-4), (0.5, 3e-4)))
    >>> average([good, bad]).round(3).tolist()
    [0.275, 0.725]
    """
    weights = [
        np.where(source.known, 1 / max(float(np.nanmean(source.variance)), 1e-30), 0.0)
        for source in sources
        if source.known.any()
    ]
    values = [np.nan_to_num(source.value) for source in sources if source.known.any()]
    if not values:
        return np.full(sources[0].value.shape, np.nan)
    total = np.sum(weights, axis=0)
    summed = np.sum([weight * value for weight, value in zip(weights, values, strict=True)], axis=0)
    return np.asarray(np.divide(summed, total, out=np.full(summed.shape, np.nan), where=total > 0))


def sources_of(name: str, measured: Measured, tables: dict[Pair, Shares]) -> list[Shares]:
    """All that was measured about one attribute."""
    own = [measured.ones[name]] if name in measured.ones else []
    firsts = [shares.sums() for (a, _), shares in tables.items() if a == name]
    return [*own, *firsts, *(shares.T.sums() for (_, b), shares in tables.items() if b == name)]


def _ones(measured: Measured, tables: dict[Pair, Shares]) -> dict[str, Floats]:
    found = {name: sources_of(name, measured, tables) for name in measured.sizes}
    return {name: nearest(average(sources)) for name, sources in found.items() if sources}


def _moved(shares: Shares, rows: Floats, columns: Floats) -> Shares:
    """The table with these sums of rows and then of columns, in the cells that are known, and Norm-Sub of that."""
    value = shares.value
    for axis, sums in ((1, rows), (0, columns)):
        missing = (sums - np.nansum(value, axis=axis)) / np.maximum(shares.known.sum(axis=axis), 1)
        value = value + np.expand_dims(missing, axis)
    return Shares(np.where(shares.known, nearest(value), np.nan), shares.variance)
