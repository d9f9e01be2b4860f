"""A model of all attributes from tables of single values and of pairs, and records drawn from it (docs/learning.md).

Noise makes any table look dependent. What it adds is known, because the variances are: tables of independent attributes
with the same sums and fresh noise of the same variances are drawn, and give the noise floor of the mutual information
and the distribution of the test statistic

    sum of r^2 / variance,   r = f - p (sums of columns) - (sums of rows) q + p q (sum of all)

which is 0 but for noise if f = p q.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import pi

import numpy as np

from analytics.estimation import norm_sub, shrunk
from protocols.arrays import Counts, Floats, Mask, Values

DRAWS = 200
LEVEL = 0.05  # how often an independent pair is taken for a dependent one
Pair = tuple[str, str]
Records = Mapping[str, Values]
"""The places of values, one for each record, by attribute."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Unbiased shares and their variances, of values `[value]` or of pairs `[first, second]`; NaN: suppressed."""

    value: Floats
    variance: Floats

    @property
    def known(self) -> Mask:
        return np.isfinite(self.value)

    @property
    def T(self) -> "Shares":
        return Shares(self.value.T, self.variance.T)

    def of_pair(self, sizes: Mapping[str, int], pair: Pair) -> "Shares":
        """The shares `[first, second]` of a pair that was asked as one attribute."""
        shape = sizes[pair[0]], sizes[pair[1]]
        return Shares(self.value.reshape(shape), self.variance.reshape(shape))

    def sums(self) -> "Shares":
        """The shares of the first attribute of a pair. A suppressed pair adds nothing; a value with no other is NaN."""
        some = self.known.any(axis=1)
        return Shares(*(np.where(some, np.nansum(part, axis=1), np.nan) for part in (self.value, self.variance)))


@dataclass(frozen=True, eq=False)
class Measured:
    """All that is known of a population: `sizes` are the numbers of values of its attributes."""

    sizes: Mapping[str, int]
    ones: Mapping[str, Shares] = field(default_factory=dict)
    pairs: Mapping[Pair, Shares] = field(default_factory=dict)


def counted(sizes: Mapping[str, int], records: Records, pairs: Iterable[Pair]) -> Measured:
    """Records as if they had been asked without noise, also in pairs: the only variance is that of a sample.

    >>> people = {"a": np.array([0, 0, 1, 1]), "b": np.array([0, 0, 1, 0])}
    >>> found = counted({"a": 2, "b": 2}, people, [("a", "b")])
    >>> found.pairs["a", "b"].value.tolist()
    [[0.5, 0.0], [0.25, 0.25]]
    """
    n = max(len(column) for column in records.values())
    ones = {name: np.bincount(records[name], minlength=k) / n for name, k in sizes.items()}
    found = {(a, b): pair_counts(records[a], records[b], (sizes[a], sizes[b])) / n for a, b in pairs}
    return Measured(
        sizes,
        {name: Shares(share, share * (1 - share) / n) for name, share in ones.items()},
        {(a, b): Shares(share, np.outer(ones[a], ones[b]) / n) for (a, b), share in found.items()},
    )


def pair_counts(first: Values, second: Values, shape: tuple[int, int]) -> Counts:
    """How many records have each pair of values."""
    places = first.astype(np.int64) * shape[1] + second
    return np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape)


def nearest(shares: Floats) -> Floats:
    """Norm-Sub over all cells of a table. Suppressed cells (NaN) get nothing.

    >>> nearest(np.array([[0.7, np.nan], [0.5, -0.1]])).round(3).tolist()
    [[0.6, 0.0], [0.4, 0.0]]
    """
    flat = np.where(np.isfinite(shares), shares, -np.inf).ravel()
    if not np.isfinite(flat).any():
        return np.zeros_like(shares)
    return norm_sub(flat).reshape(shares.shape)


def agree(measured: Measured) -> tuple[dict[str, Floats], dict[Pair, Floats]]:
    """Tables of all attributes that were asked, alone or in a pair, and of all pairs, made to agree.

    They are distributions: non-negative, and summing to 1.

    >>> sure, unsure = np.full(2, 1e-6), np.full((2, 2), 1e-2)
    >>> ones, pairs = agree(Measured({"a": 2, "b": 2}, {"a": Shares(np.array([0.5, 0.5]), sure)},
    ...                              {("a", "b"): Shares(np.array([[0.6, 0.1], [0.1, 0.2]]), unsure)}))
    >>> pairs["a", "b"].round(3).tolist(), ones["b"].round(3).tolist()
    ([[0.464, 0.036], [0.236, 0.264]], [0.7, 0.3])
    """
    ones, pairs = {}, {}
    for name in measured.sizes:
        sources = [measured.ones[name]] if name in measured.ones else []
        sources += [shares.sums() for (a, _), shares in measured.pairs.items() if a == name]
        sources += [shares.T.sums() for (_, b), shares in measured.pairs.items() if b == name]
        if sources:
            ones[name] = nearest(average(sources))
    for (a, b), shares in measured.pairs.items():
        pairs[a, b] = np.zeros_like(shares.value)
        if shares.known.any():
            pairs[a, b] = shrunk(shares.value, float(np.nanmean(shares.variance)), ones[a], ones[b])
    return ones, pairs


def average(sources: list[Shares]) -> Floats:
    """The average of several tables of the same shares; NaN where all of them are suppressed.

    A table's weight is the inverse of its mean variance: one for each cell would depend on what was measured there.

    >>> good, bad = (Shares(np.array([p, 1 - p]), np.full(2, v)) for p, v in ((0.2, 1e-4), (0.5, 3e-4)))
    >>> average([good, bad]).round(3).tolist()
    [0.275, 0.725]
    """
    total, summed = np.zeros(sources[0].value.shape), np.zeros(sources[0].value.shape)
    for source in sources:
        if source.known.any():
            weight = np.where(source.known, 1 / max(float(np.nanmean(source.variance)), 1e-30), 0.0)
            total += weight
            summed += weight * np.nan_to_num(source.value)
    return np.asarray(np.divide(summed, total, out=np.full(summed.shape, np.nan), where=total > 0))


@dataclass(frozen=True)
class Association:
    """What was found about one pair."""

    information: float  # the mutual information of the Norm-Sub table, in nats
    noise_floor: float  # what it would be on average if the attributes were independent
    chance_if_independent: float  # the share of independent tables that deviate as much

    @property
    def dependent(self) -> bool:
        """Whether the pair can be told from an independent one."""
        return self.chance_if_independent <= LEVEL

    @property
    def gain(self) -> float:
        """The information that is not noise; 0 where the pair cannot be told from an independent one."""
        return max(self.information - self.noise_floor, 0.0) if self.dependent else 0.0


@dataclass(frozen=True, eq=False)
class Model:
    """Tables that agree, what each pair says, and the pairs along which records are drawn."""

    ones: Mapping[str, Floats]
    pairs: Mapping[Pair, Floats]
    associations: Mapping[Pair, Association]
    edges: tuple[Pair, ...]


def fit(measured: Measured) -> Model:
    """The model of what was measured."""
    ones, pairs = agree(measured)
    found = {(a, b): association(shares, ones[a], ones[b]) for (a, b), shares in measured.pairs.items()}
    return Model(ones, pairs, found, chow_liu({pair: one.gain for pair, one in found.items()}))


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


def mutual_information(table: Floats) -> float:
    """Of a distribution over pairs, in nats.

    >>> mutual_information(np.full((2, 2), 0.25)), round(mutual_information(np.eye(2) / 2), 3)
    (0.0, 0.693)
    """
    even = np.outer(table.sum(axis=1), table.sum(axis=0))
    ratio = np.divide(table, even, out=np.ones_like(table), where=table > 0)
    return float((table * np.log(ratio)).sum())


def association(shares: Shares, first: Floats, second: Floats) -> Association:
    """What a measured table says about two attributes with these distributions. The draws are always the same."""
    random, known, even = np.random.default_rng(0), shares.known, np.outer(first, second)
    spread = np.where(known, np.sqrt(np.nan_to_num(shares.variance)), 0.0)
    informations, deviations = [], []
    for _ in range(DRAWS):
        noisy = even + spread * random.standard_normal(even.shape)
        informations.append(mutual_information(nearest(np.where(known, noisy, np.nan))))
        deviations.append(_deviation(noisy, first, second, spread))
    own = _deviation(np.where(known, shares.value, even), first, second, spread)
    chance = (1 + int(np.sum(np.array(deviations) >= own))) / (1 + DRAWS)
    return Association(mutual_information(nearest(shares.value)), float(np.mean(informations)), chance)


def contrast(table: Floats, first: Floats, second: Floats) -> Floats:
    """What a table has beyond independent attributes with these distributions (r, above)."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    beyond = table - np.outer(first, columns) - np.outer(rows, second)
    return np.asarray(beyond + table.sum() * np.outer(first, second))


def _deviation(table: Floats, first: Floats, second: Floats, spread: Floats) -> float:
    rest = contrast(table, first, second)
    return float((np.divide(rest, spread, out=np.zeros_like(rest), where=spread > 0) ** 2).sum())


def draw_records(model: Model, rows: int, seed: int = 0) -> dict[str, Values]:
    """So many records, as places of values by attribute. An attribute without any published value is left out.

    The first attribute of each tree is drawn from its own table, and every other given its neighbour in the tree.

    >>> even = np.full(2, 0.5)
    >>> model = Model({"a": even, "b": even}, {("a", "b"): np.eye(2) / 2}, {}, (("a", "b"),))
    >>> records = draw_records(model, 1000)
    >>> bool((records["a"] == records["b"]).all()), int(records["a"].max())
    (True, 1)
    """
    random = np.random.default_rng(seed)
    ones = {name: share for name, share in model.ones.items() if share.sum() > 0}
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
                    table = model.pairs[pair] if pair[0] == parent else model.pairs[pair].T
                    there = table.sum(axis=1, keepdims=True) > 0  # otherwise there is nobody with this value
                    records[child] = _choose(np.where(there, table, ones[child]), records[parent], random)
                    reached.append(child)
    return {name: records[name] for name in ones}


@dataclass(frozen=True)
class Distance:
    """How far records are from the measured table of a pair: half the sum of all differences of two distributions."""

    total_variation: float
    total_variation_independent: float  # that of independent records with the same tables of single attributes
    total_variation_of_noise: float  # about what the noise of the measured table alone makes


def distances(records: Records, measured: Measured, ones: Mapping[str, Floats]) -> dict[Pair, Distance]:
    """The distance to every measured pair, whether it is in the tree or not."""
    found = {}
    for (a, b), shares in measured.pairs.items():
        if a in records and b in records:
            drawn = pair_counts(records[a], records[b], (measured.sizes[a], measured.sizes[b])) / len(records[a])
            table = nearest(shares.value)
            own, even = (float(np.abs(one - table).sum() / 2) for one in (drawn, np.outer(ones[a], ones[b])))
            noise = min(1.0, float(np.sqrt(2 / pi * np.nan_to_num(shares.variance)).sum() / 2))
            found[a, b] = Distance(own, even, noise)
    return found


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
