"""What was measured: shares of values and of pairs of values, with their variances; and the tables that agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.votes import Floats

Pair = tuple[str, str]
Records = Mapping[str, NDArray[np.integer[Any]]]
"""The places of values, one for each record, by attribute."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Unbiased shares and their variances, of values `[value]` or of pairs `[first, second]`; NaN: suppressed."""

    value: Floats
    variance: Floats

    @property
    def known(self) -> NDArray[np.bool_]:
        return np.isfinite(self.value)

    @property
    def T(self) -> Shares:
        return Shares(self.value.T, self.variance.T)

    def sums(self) -> Shares:
        """The shares of the first attribute of a pair. A suppressed pair adds nothing; a value with no other is NaN."""
        some = self.known.any(axis=1)
        added = (np.where(some, np.nansum(part, axis=1), np.nan) for part in (self.value, self.variance))
        return Shares(*added)


@dataclass(frozen=True, eq=False)
class Measured:
    """All that is known of a population: `sizes` are the numbers of values of its attributes."""

    sizes: Mapping[str, int]
    ones: Mapping[str, Shares] = field(default_factory=dict)
    pairs: Mapping[Pair, Shares] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Tables:
    """Distributions of values and of pairs: non-negative, and summing to 1."""

    ones: Mapping[str, Floats]
    pairs: Mapping[Pair, Floats]


def counted(sizes: Mapping[str, int], records: Records, pairs: list[Pair] | None = None) -> Measured:
    """Records as if they had been asked without noise: the only variance is that of a sample.

    `pairs`: only these; all if it is left out.

    >>> found = counted({"a": 2, "b": 2}, {"a": np.array([0, 0, 1, 1]), "b": np.array([0, 0, 1, 0])})
    >>> found.pairs["a", "b"].value.tolist()
    [[0.5, 0.0], [0.25, 0.25]]
    """
    n = max(len(column) for column in records.values())
    ones = {name: np.bincount(records[name], minlength=k) / n for name, k in sizes.items()}
    wanted = list(combinations(sizes, 2)) if pairs is None else pairs
    found = {(a, b): pair_counts(records[a], records[b], (sizes[a], sizes[b])) / n for a, b in wanted}
    return Measured(
        sizes,
        {name: Shares(share, share * (1 - share) / n) for name, share in ones.items()},
        {(a, b): Shares(share, np.outer(ones[a], ones[b]) / n) for (a, b), share in found.items()},
    )


def pair_counts(
    first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], shape: tuple[int, int]
) -> NDArray[np.int64]:
    """How many records have each pair of values."""
    places = first.astype(np.int64) * shape[1] + second
    return np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape)
