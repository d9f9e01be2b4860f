"""A model of all attributes from tables of pairs: how much each pair says, and a tree of Chow and Liu over them.

Of all trees it is the one whose pairs have the most mutual information. Attributes that no edge joins are independent:
nothing was asked about them together, or nothing but noise came back.

Noise makes any table look dependent. What it adds is known, because the variances are: tables of independent attributes
with the same sums and fresh noise of the same variances are drawn, and give the noise floor of the mutual information
and the distribution of the test statistic

    sum of r^2 / variance,   r = f - p (sums of columns) - (sums of rows) q + p q (sum of all)

which is 0 but for noise if f = p q.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analytics.estimation import norm_sub
from lab.learning.tables import Measured, Pair, Shares, Tables, agree
from protocols.arrays import Floats, Mask

DRAWS = 200
LEVEL = 0.05  # how often an independent pair is taken for a dependent one


@dataclass(frozen=True)
class Association:
    """What was found about one pair."""

    information: float  # the mutual information of the Norm-Sub table, in nats
    floor: float  # what it would be on average if the attributes were independent
    chance: float  # the share of independent tables that deviate as much

    @property
    def dependent(self) -> bool:
        """Whether the pair can be told from an independent one."""
        return self.chance <= LEVEL

    @property
    def gain(self) -> float:
        """The information that is not noise; 0 where the pair cannot be told from an independent one."""
        return max(self.information - self.floor, 0.0) if self.dependent else 0.0


@dataclass(frozen=True, eq=False)
class Model:
    """Tables that agree, what each pair says, and the pairs along which records are drawn."""

    tables: Tables
    associations: Mapping[Pair, Association]
    edges: tuple[Pair, ...]


def fit(measured: Measured) -> Model:
    """The model of what was measured."""
    tables = agree(measured)
    found = {(a, b): association(shares, tables.ones[a], tables.ones[b]) for (a, b), shares in measured.pairs.items()}
    return Model(tables, found, chow_liu({pair: one.gain for pair, one in found.items()}))


def chow_liu(gains: Mapping[Pair, float]) -> tuple[Pair, ...]:
    """The pairs of the largest tree, the most informative first; a pair without gain is never among them.

    >>> chow_liu({("a", "b"): 0.3, ("b", "c"): 0.2, ("a", "c"): 0.25, ("c", "d"): 0.0})
    (('a', 'b'), ('a', 'c'))
    """
    tree_of = {name: name for pair in gains for name in pair}
    edges = []
    for (a, b), gain in sorted(gains.items(), key=lambda item: -item[1]):
        if gain > 0 and tree_of[a] != tree_of[b]:
            joined = tree_of[b]
            tree_of = {name: tree_of[a] if tree == joined else tree for name, tree in tree_of.items()}
            edges.append((a, b))
    return tuple(edges)


def mutual_information(tables: Floats) -> Floats:
    """Of distributions over pairs `[..., first, second]`, in nats.

    >>> mutual_information(np.array([np.full((2, 2), 0.25), np.eye(2) / 2])).round(3).tolist()
    [0.0, 0.693]
    """
    even = tables.sum(axis=-1, keepdims=True) * tables.sum(axis=-2, keepdims=True)
    ratio = np.divide(tables, even, out=np.ones_like(tables), where=tables > 0)
    return np.asarray((tables * np.log(ratio)).sum(axis=(-2, -1)))


def association(shares: Shares, first: Floats, second: Floats) -> Association:
    """What a measured table says about two attributes with these distributions. The draws are always the same."""
    random, known = np.random.default_rng(0), shares.known
    even = np.outer(first, second)
    spread = np.where(known, np.sqrt(np.nan_to_num(shares.variance)), 0.0)
    informations, deviations = [], []
    for _ in range(DRAWS):
        noisy = even + spread * random.standard_normal(even.shape)
        informations.append(_information(noisy, known))
        deviations.append(_deviation(noisy, first, second, spread))
    own = _deviation(np.where(known, shares.value, even), first, second, spread)
    chance = (1 + int(np.sum(np.array(deviations) >= own))) / (1 + DRAWS)
    return Association(float(_information(shares.value, known)), float(np.mean(informations)), chance)


def contrast(tables: Floats, first: Floats, second: Floats) -> Floats:
    """What tables have beyond independent attributes with these distributions (r, above)."""
    rows, columns = tables.sum(axis=-1, keepdims=True), tables.sum(axis=-2, keepdims=True)
    total = rows.sum(axis=-2, keepdims=True)
    return np.asarray(tables - first[:, None] * columns - rows * second + total * np.outer(first, second))


def _information(tables: Floats, known: Mask) -> Floats:
    flat = np.where(known, tables, -np.inf).reshape(*tables.shape[:-2], -1)
    return mutual_information(norm_sub(flat).reshape(tables.shape))


def _deviation(tables: Floats, first: Floats, second: Floats, spread: Floats) -> Floats:
    rest = contrast(tables, first, second)
    return np.asarray((np.divide(rest, spread, out=np.zeros_like(rest), where=spread > 0) ** 2).sum(axis=(-2, -1)))
