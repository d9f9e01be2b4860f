"""The truth that methods are measured against: everybody's values in every period, and the priors of RS+RFD."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from producers.scenarios import Presences
from protocols.arrays import Counts, Floats, Values
from protocols.survey import MIN_SHARE, TIMES, Attribute


def everybody_once(moments: Iterable[Presences]) -> Presences:
    """All devices that were ever present as one period, each with its first values.

    >>> monday = Presences(0, np.array([1, 2], dtype=np.uint64), {"plan": np.array([0, 1])})
    >>> tuesday = Presences(1, np.array([0, 2], dtype=np.uint64), {"plan": np.array([2, 2])})
    >>> once = everybody_once([monday, tuesday])
    >>> once.devices.tolist(), once.values["plan"].tolist()
    ([0, 1, 2], [2, 0, 1])
    """
    periods = list(moments)
    devices, first = np.unique(np.concatenate([moment.devices for moment in periods]), return_index=True)
    names = periods[0].values
    values = {name: np.concatenate([moment.values[name] for moment in periods])[first] for name in names}
    return Presences(0, devices, values)


@dataclass(frozen=True, eq=False)
class Truth:
    """The periods, and the number of values of each attribute.

    `priors` are the distributions from which RS+RFD draws fakes: above 0 and summing to 1. `crosses` are further
    questions about pairs of attributes, which `crossing` adds. `places` are the attributes whose values are the cells
    of a grid, as a survey has them.
    """

    sizes: Mapping[str, int]
    moments: Sequence[Presences]
    priors: Mapping[str, Floats] = field(default_factory=dict)
    crosses: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    places: Mapping[str, Attribute] = field(default_factory=dict)

    @property
    def people(self) -> Counts:
        """The number of devices present, by period."""
        return np.array([len(moment.devices) for moment in self.moments])

    @cached_property
    def frequencies(self) -> dict[str, Floats]:
        """The true shares `[period, value]` of each attribute; 0 in periods without devices."""
        counts = {
            name: np.array([np.bincount(moment.values[name], minlength=k) for moment in self.moments])
            for name, k in self.sizes.items()
        }
        return {name: count / np.maximum(self.people, 1)[:, None] for name, count in counts.items()}


def one_period(sizes: Mapping[str, int], values: Mapping[str, Values]) -> Truth:
    """People who are all present in one period."""
    (people,) = {len(column) for column in values.values()}
    columns = {name: column.astype(np.int64) for name, column in values.items()}
    return Truth(sizes, [Presences(0, np.arange(people, dtype=np.uint64), columns)])


def crossing(truth: Truth, crosses: Iterable[tuple[str, str]]) -> Truth:
    """The same people, also asked about pairs of attributes.

    >>> values = {"plan": np.array([0, 0, 1, 1]), "age": np.array([0, 1, 2, 2])}
    >>> day = Presences(0, np.arange(4, dtype=np.uint64), values)
    >>> both = crossing(Truth({"plan": 2, "age": 3}, [day]), [("plan", "age")])
    >>> both.sizes["plan*age"], both.moments[0].values["plan*age"].tolist()
    (6, [0, 1, 5, 5])
    """
    sizes, pairs = dict(truth.sizes), {TIMES.join(pair): pair for pair in crosses}
    for name, (first, second) in pairs.items():
        sizes[name] = sizes[first] * sizes[second]

    def crossed(moment: Presences) -> Presences:
        values = {name: column.astype(np.int64) for name, column in moment.values.items()}
        both = {name: values[first] * sizes[second] + values[second] for name, (first, second) in pairs.items()}
        return Presences(moment.period, moment.devices, values | both)

    return Truth(sizes, [crossed(moment) for moment in truth.moments], truth.priors, pairs, truth.places)


def noisy_priors(truth: Truth, eps: float, random: np.random.Generator) -> dict[str, Floats]:
    """Priors as in the RS+RFD paper: an earlier census under central differential privacy.

    Laplace noise on the counts of all periods together, each attribute with its part of `eps`, rounded and cut at 0.
    Half a person is added to every value (or more, up to the smallest share a survey accepts): a value that fakes never
    have would reveal which reports are true.

    >>> day = Presences(0, np.arange(4000, dtype=np.uint64), {"plan": np.arange(4000) % 4 // 3})
    >>> truth = Truth({"plan": 2}, [day])
    >>> noisy_priors(truth, 0.1, np.random.default_rng(1))["plan"].round(2).tolist()
    [0.75, 0.25]
    """
    priors = {}
    for name, shares in truth.frequencies.items():
        counts = truth.people @ shares
        noise = random.laplace(scale=len(truth.sizes) / eps, size=counts.shape)
        guess = np.maximum(np.rint(counts + noise), 0) + 0.5
        guess = np.maximum(guess / guess.sum(), 2 * MIN_SHARE)
        priors[name] = guess / guess.sum()
    return priors
