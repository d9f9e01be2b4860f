"""Which values the devices have whose conduct is tested: all values of every attribute alike, and sets of all sizes.

Every second device has the values at the same place of each attribute: only such devices have the same cells, and so
show whether two attributes share a memo.
"""

from dataclasses import dataclass

import numpy as np

from protocols.arrays import Mask, Whole
from protocols.survey import NOTHING, Attribute, Survey


@dataclass(frozen=True)
class Assigned:
    """The values of devices 0 .. n-1, which never change.

    `alike`: the devices that have the same place of each attribute.
    """

    values: dict[str, Whole]
    alike: Mask


def choices(attribute: Attribute) -> Whole:
    """What a device may have, in rows: one value, or a set, filled up with NOTHING.

    Of sets those of every size, from the first value on and from the middle one on.

    >>> choices(Attribute(name="a", values=("x", "y", "z"), several=2)).tolist()
    [[-1, -1], [0, -1], [0, 1], [1, -1], [1, 2]]
    """
    if attribute.several is None:
        return np.arange(attribute.k)[:, None]
    rows = [np.full(attribute.several, NOTHING)]
    for start in (0, attribute.k // 2):
        for size in range(1, attribute.several + 1):
            row = np.full(attribute.several, NOTHING)
            row[:size] = (start + np.arange(size)) % attribute.k
            rows.append(row)
    return np.array(rows)


def assigned(survey: Survey, devices: int, seed: int) -> Assigned:
    """Values of so many devices: each has as many as the next one. Who has which is drawn."""
    rng = np.random.default_rng([seed, devices])
    possible = {attribute.name: choices(attribute) for attribute in survey.attributes}
    most = max(map(len, possible.values()))
    order = rng.permutation(devices)
    same = order[: devices // 2]
    others = order[devices // 2 :]
    alike = np.zeros(devices, dtype=bool)
    alike[same] = True
    values = {}
    for attribute in survey.attributes:
        rows = possible[attribute.name]
        places = np.zeros(devices, dtype=np.int64)
        places[same] = np.arange(len(same)) % most % len(rows)
        places[others] = rng.permutation(len(others)) % len(rows)
        chosen = rows[places]
        values[attribute.name] = chosen[:, 0] if attribute.several is None else chosen
    return Assigned(values, alike)


def fewest(devices: int, values: int, most: int) -> int:
    """At least so many of the devices have each value of an attribute; `most`: the values of the widest attribute.

    >>> fewest(100, 3, 4)
    28
    """
    same = devices // 2
    return same // most * (most // values) + (devices - same) // values


def devices_for(each: int, values: int, most: int) -> int:
    """How many devices there must be, so that as many have each value.

    >>> devices_for(28, 3, 4)
    96
    """
    devices = each * values
    while fewest(devices, values, most) < each:
        devices += 1
    return devices
