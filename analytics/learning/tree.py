"""A model of all attributes from tables of pairs: a tree of Chow and Liu over the pairs that were measured.

Of all trees it is the one whose pairs have the most mutual information. Attributes that no edge joins are independent:
nothing was asked about them together, or nothing but noise came back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analytics.learning.agreeing import agree
from analytics.learning.association import Association, association
from analytics.learning.tables import Measured, Pair, Tables


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
