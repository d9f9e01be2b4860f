"""Which areas are large enough to publish, and neighbours that are merged until they are."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analytics.estimation.estimates import estimate
from protocols.arrays import Floats
from protocols.mechanisms import Channel

PRECISE = 0.1
"""The standard error of the people of an area, as a part of them, from which on they are precise."""


class Merged(NamedTuple):
    """Some areas as one: their share of the people, and its standard error as a part of it."""

    areas: tuple[int, ...]
    share: float
    error: float

    @property
    def precise(self) -> bool:
        return self.error <= PRECISE


def expected_errors(
    channel: Channel, reports: float, devices: float, shares: Floats
) -> Callable[[Sequence[int]], Merged]:
    """What reports will say of some areas together, if `shares` of the devices are in each."""
    counts = channel.support(shares) * reports

    def merged(areas: Sequence[int]) -> Merged:
        group = np.isin(np.arange(channel.k), areas)
        found, share = estimate(counts, reports, channel, population=devices, groups=group[None]), shares[group].sum()
        return Merged(tuple(sorted(areas)), float(share), float(found.error[0] / share) if share else np.inf)

    return merged


def merge_neighbours(
    areas: Sequence[int], neighbours: Mapping[int, Collection[int]], merged: Callable[[Sequence[int]], Merged]
) -> list[Merged]:
    """Areas, of which the smallest that is not precise is merged with its smallest neighbour, as often as one can.

    >>> one_in_row = {0: [1], 1: [0, 2], 2: [1, 3], 3: [2], 4: []}
    >>> people = [5, 2, 1, 4, 1]
    >>> def as_one(areas): return Merged(tuple(sorted(areas)), n := sum(people[area] for area in areas), 0.4 / n)
    >>> [(one.areas, one.precise) for one in merge_neighbours(range(5), one_in_row, as_one)]
    [((0,), True), ((1, 2, 3), True), ((4,), False)]
    """
    groups = {area: merged([area]) for area in areas}
    borders = {area: set(neighbours.get(area, ())) & set(areas) for area in areas}
    while poor := [area for area, one in groups.items() if not one.precise and borders[area]]:
        one = min(poor, key=lambda area: groups[area].share)
        other = min(borders[one], key=lambda area: groups[area].share)
        groups[one] = merged(groups[one].areas + groups.pop(other).areas)
        borders[one] = (borders[one] | borders.pop(other)) - {one, other}
        for border in borders.values():
            if other in border:
                border.remove(other)
                border.add(one)
        borders[one].discard(one)
    return sorted(groups.values())
