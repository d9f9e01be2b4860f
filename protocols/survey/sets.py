"""Sets: an attribute of which a device has several values at once, such as the integrations that are on (PROTOCOLS 12).

A device draws one element of its set, padded to L elements, and the question is about the element.

And numbers that are asked by thresholds: the range is cut into slots, and a number is the set of the slots it is above.
"""

from itertools import pairwise

import numpy as np

from protocols.arrays.aliases import Floats, Whole
from protocols.mechanisms.lifelong import above, slots_of
from protocols.mechanisms.record import MAX_VALUES
from protocols.survey.attribute import Attribute, refuse_twice

NOTHING = -1
"""Fills the rows of a table of sets, which have as many columns as the largest set."""


class Padded(Attribute):
    """The attribute that is asked of sets: the values, then the paddings."""

    items: Attribute


def padded(attribute: Attribute) -> Padded:
    """The elements of an attribute of sets. It was checked, so this is not checked again.

    A padding is in every set that has at most so many values, and is named by that.

    >>> padded(Attribute(name="on", values=("mqtt", "hue", "knx"), several=2)).values
    ('mqtt', 'hue', 'knx', '1 or fewer', '0 or fewer')
    """
    sizes = reversed(range(attribute.several or 0))
    given = {name: getattr(attribute, name) for name in ("name", "groups", "share", "mechanism", "several", "other")}
    values = (*attribute.values, *(f"{size} or fewer" for size in sizes))
    return Padded.model_construct(**given, values=values, items=attribute)


def check_set(attribute: Attribute, key: str) -> None:
    """Raise ValueError if an attribute cannot be one of sets. `key` is what the survey calls `several`."""
    where, several = f"attribute {attribute.name!r}: {key}", attribute.several
    assert several is not None
    if several == 1:
        raise ValueError(f"{where} is 1; leave it out, and list a value for none")
    if several >= attribute.k:
        raise ValueError(
            f"{where} is {several}, and there are {attribute.k} values; choose less, or ask an attribute of yes and no "
            "for each value"
        )
    if attribute.k + several > MAX_VALUES:
        raise ValueError(f"{where} and the values are {attribute.k + several:,} together; at most {MAX_VALUES:,}")
    for key in ("range", "grid", "prior"):
        if getattr(attribute, key) is not None:
            raise ValueError(f"{where} does not go with {key}; list values, or leave one of both out")
    if attribute.role != "plain":
        raise ValueError(f"{where} does not go with the role {attribute.role}; leave one of both out")
    refuse_twice(padded(attribute).values, f"{where} has the element", "rename the value")


class Thresholds(Padded):
    """The attribute that is asked: for each slot that a number is above it (`items`), then for each that it is not.

    Its role is amount, whether the survey says so or not.
    """

    number: Attribute

    def numbers_at(self, share: float) -> float:
        """The number at a share of the range; of values of several numbers from the first one's middle to the last's.

        >>> thresholds(Attribute(name="age", range={"last": 99, "step": 10})).numbers_at(0.5)
        49.5
        """
        first, last = (sum(self.number.numbers[end]) / 2 for end in (0, -1))
        return first + share * (last - first)

    def people_above(self, counts: Whole) -> Floats:
        """How many devices are above a place of each slot on average, from how many have each number.

        >>> thresholds(Attribute(name="age", range={"last": 9})).people_above(np.arange(10) == 6).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
        """
        found = above(len(counts), self.several or 1) @ counts
        return found if self.several else np.append(found, counts.sum() - found)


def thresholds(attribute: Attribute) -> Thresholds:
    """The slots of a range. It was checked, so this is not checked again.

    >>> thresholds(Attribute(name="age", range={"last": 90}, mechanism="threshold", parameter=2)).values
    ('above 0 to 45', 'above 45 to 90', 'not above 0 to 45', 'not above 45 to 90')
    """
    slots = slots_of(attribute.k, attribute.parameter)
    given = {name: getattr(attribute, name) for name in ("name", "share", "quantiles", "mechanism", "range")}
    asked = Thresholds.model_construct(**given, role="amount", number=attribute)
    ends = [f"{round(asked.numbers_at(slot / slots), 2):.15g}" for slot in range(slots + 1)]
    yes = tuple(f"above {low} to {high}" for low, high in pairwise(ends))
    values = (*yes, *(f"not {name}" for name in yes))
    items = Attribute.model_construct(name=attribute.name, values=yes if slots > 1 else values)
    return asked.model_copy(update={"values": values, "items": items, "several": slots if slots > 1 else None})


def check_thresholds(attribute: Attribute) -> None:
    """Raise ValueError if an attribute cannot be asked by thresholds."""
    where, span = f"attribute {attribute.name!r}: threshold", attribute.range
    if span is None or attribute.role not in ("plain", "amount"):
        raise ValueError(f"{where} is for amounts; declare a range, and no other role, or choose another mechanism")
    if (span.last - span.first + 1) % span.step:
        last = span.first + attribute.k * span.step - 1
        raise ValueError(f"{where} needs values of the same width; choose last: {last}")
    if attribute.groups:
        raise ValueError(f"{where} has no shares of single values; leave groups out")
    if slots_of(attribute.k, attribute.parameter) >= attribute.k:
        raise ValueError(f"{where} has at most {attribute.k - 1} slots here; choose a smaller parameter")


def table_of_sets(rows: Whole, items: Whole, count: int) -> Whole:
    """A table of `count` sets, from pairs of a set and one of its values; sets ascend.

    >>> table_of_sets(np.array([0, 0, 2]), np.array([4, 1, 3]), 3).tolist()
    [[4, 1], [-1, -1], [3, -1]]
    """
    sizes = np.bincount(rows, minlength=count)
    table = np.full((count, max(1, sizes.max(initial=0))), NOTHING)
    table[rows, np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)] = items
    return table


def count_values(values: Whole, k: int) -> Whole:
    """How many devices have each of k values: one value each, or sets of them.

    >>> count_values(np.array([[1, 2, 1], [2, NOTHING, NOTHING]]), 4).tolist()
    [0, 1, 2, 0]
    """
    if values.ndim > 1:
        places = np.unique(values + np.arange(len(values))[:, None] * (k + 1) + 1)  # a place for NOTHING, too
        values = places[places % (k + 1) > 0] % (k + 1) - 1
    return np.bincount(values, minlength=k)


def with_paddings(sets: Whole, items: int, several: int) -> Whole:
    """The elements of each padded set, ascending: numbers below `items`, then paddings, filled with items + several.

    >>> with_paddings(np.array([[2, 0, 2], [NOTHING, NOTHING, NOTHING], [0, 1, 2]]), items=5, several=2).tolist()
    [[0, 2, 7, 7, 7], [5, 6, 7, 7, 7], [0, 1, 2, 7, 7]]
    """
    end = items + several
    own = np.sort(np.where(sets == NOTHING, end, sets), axis=1)
    own[:, 1:][own[:, 1:] == own[:, :-1]] = end  # a value that is named twice
    missing = several - np.count_nonzero(own < items, axis=1)
    paddings = np.arange(several)
    added = np.where(paddings < missing[:, None], items + paddings, end)
    return np.sort(np.concatenate([own, added], axis=1), axis=1)
