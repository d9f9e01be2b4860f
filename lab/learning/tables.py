"""What was measured: shares of values and of pairs of values, with their variances; and tables that agree.

An attribute is known from its own question and from the sums of every cross that has it. Each of these is unbiased, so
their average with the inverses of the variances as weights is, too, and has the smallest error. A table of pairs is
shrunk towards independence as far as it is noise, and gets the sums of both attributes (`shrunk`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from analytics.estimation import norm_sub, shrunk
from protocols.arrays import Counts, Floats, Mask, Values

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
