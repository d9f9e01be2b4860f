"""Synthetic records: drawn along the edges of a model, and compared with what was measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi

import numpy as np

from lab.learning.model import Model
from lab.learning.tables import Measured, Pair, Records, nearest, pair_counts
from protocols.arrays import Floats, Values


def draw_records(model: Model, rows: int, seed: int = 0) -> dict[str, Values]:
    """So many records, as places of values by attribute. An attribute without any published value is left out.

    The first attribute of each tree is drawn from its own table, and every other given its neighbour in the tree.

    >>> from lab.learning.tables import Tables
    >>> even = np.full(2, 0.5)
    >>> model = Model(Tables({"a": even, "b": even}, {("a", "b"): np.eye(2) / 2}), {}, (("a", "b"),))
    >>> records = draw_records(model, 1000)
    >>> bool((records["a"] == records["b"]).all()), int(records["a"].max())
    (True, 1)
    """
    random = np.random.default_rng(seed)
    ones = {name: share for name, share in model.tables.ones.items() if share.sum() > 0}
    records: dict[str, Values] = {}
    for root, share in ones.items():
        if root not in records:
            records[root] = _choose(share[None], np.zeros(rows, dtype=np.int64), random)
        reached = [root]
        while reached:
            parent = reached.pop()
            for pair in model.edges:
                child = pair[1] if pair[0] == parent else pair[0]
                if parent in pair and child not in records and child in ones:
                    table = model.tables.pairs[pair] if pair[0] == parent else model.tables.pairs[pair].T
                    records[child] = _choose(_given(table, ones[child]), records[parent], random)
                    reached.append(child)
    return {name: records[name] for name in ones}


@dataclass(frozen=True)
class Distance:
    """How far records are from the measured table of a pair, as total variation."""

    records: float
    independent: float  # that of independent records with the same tables of single attributes
    noise: float  # about what the noise of the measured table alone makes


def distances(records: Records, measured: Measured, ones: Mapping[str, Floats]) -> dict[Pair, Distance]:
    """The distance to every measured pair, whether it is in the tree or not."""
    found = {}
    for (a, b), shares in measured.pairs.items():
        if a in records and b in records:
            drawn = pair_counts(records[a], records[b], (measured.sizes[a], measured.sizes[b])) / len(records[a])
            table = nearest(shares.value)
            even = np.outer(ones[a], ones[b])
            noise = min(1.0, float(np.sqrt(2 / pi * np.nan_to_num(shares.variance)).sum() / 2))
            found[a, b] = Distance(total_variation(drawn, table), total_variation(even, table), noise)
    return found


def total_variation(one: Floats, other: Floats) -> float:
    """Half the sum of all absolute differences of two distributions: 0 if they are the same, at most 1."""
    return float(np.abs(one - other).sum() / 2)


def _given(table: Floats, fallback: Floats) -> Floats:
    """The distribution of the second attribute for each value of the first; `fallback` for a value without people."""
    rows = table.sum(axis=1, keepdims=True)
    return np.asarray(np.where(rows > 0, table / np.where(rows > 0, rows, 1.0), fallback / fallback.sum()))


def _choose(chances: Floats, given: Values, random: np.random.Generator) -> Values:
    """A place for each record, from the row of `chances` that it is given.

    Records of one row are spread evenly over its chances, in random order: they miss them by rounding only.
    """
    k = chances.shape[1]
    ends = np.cumsum(chances, axis=1)
    ends /= ends[:, -1:]
    order = np.lexsort((random.random(len(given)), given))
    sizes = np.bincount(given, minlength=len(chances))
    rank = np.arange(len(given)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.empty(len(given), dtype=np.int64)
    drawn = given[order] + (rank + random.random(len(given))) / np.repeat(sizes, sizes)
    places[order] = np.searchsorted((ends + np.arange(len(chances))[:, None]).ravel(), drawn, side="right")
    return np.asarray(np.minimum(places - given * k, k - 1))
