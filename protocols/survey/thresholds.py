"""Numbers that are asked by thresholds: the range is cut into slots, and an answer is about one of them."""

from itertools import pairwise

import numpy as np

from protocols.arrays.aliases import Floats, Whole
from protocols.mechanisms.lifelong import above, slots_of
from protocols.survey.attribute import Attribute
from protocols.survey.sets import Padded


class Thresholds(Padded):
    """The attribute that is asked: for each slot that a number is above it, then for each that it is not.

    Its role is amount, whether the survey says so or not.
    A number is asked like the set of the slots that it is above (`items`).
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
