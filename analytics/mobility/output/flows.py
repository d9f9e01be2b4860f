"""Flows: the people who went from one place to another, from the values of a transition attribute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.mobility.model import AskedAttribute, AttributeReport, Quantities, Quantity, quantities

ARROW = ">"  # between origin and destination in the values of a transition attribute


@dataclass(frozen=True)
class Flows:
    """One entry for each pair of an origin and a destination."""

    origins: list[str]
    destinations: list[str]
    people: Quantities


def flows(asked: AskedAttribute, attribute: AttributeReport, visitors: Quantity | None) -> Flows | None:
    """The origin-destination table, row by row; values without an origin and a destination are left out.

    None if the attribute has another role, or no answers.
    """
    if asked.role != "transition" or attribute.values is None or visitors is None:
        return None
    pairs = [tuple(part.strip() for part in value.split(ARROW)) for value in asked.values]
    places = np.array([place for place, pair in enumerate(pairs) if len(pair) == 2], dtype=np.intp)
    people = attribute.values.people(visitors).estimates[places]
    return Flows([pairs[at][0] for at in places], [pairs[at][1] for at in places], quantities(people))
