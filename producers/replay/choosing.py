"""One value per person, attribute and period, out of many events.

The choice depends on the events, not on the order they were read in: events of the same time are ordered by the
positions of their values, and of equally frequent values the one with the lower position is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Devices, Mask, Whole
from protocols.respondent import UNKNOWN
from protocols.survey import table_of_sets

Events = NDArray[np.void]
"""Row number, device, time and values (one position per attribute, or UNKNOWN); see `event_type`."""


class Rule(StrEnum):
    FIRST = "first"
    LAST = "last"
    MOST = "most"
    EVERY = "every"


def event_type(attributes: int) -> np.dtype[np.void]:
    return np.dtype([("row", "<i8"), ("device", "<u8"), ("time", "<i8"), ("values", "<i4", (attributes,))])


def without_duplicates(events: Events) -> tuple[Events, Whole]:
    """The events without duplicates (the first of each stays), and the rows of the duplicates.

    They are in the order of devices, times and values.
    """
    values = [events["values"][:, i] for i in reversed(range(events["values"].shape[1]))]
    ordered = events.take(np.lexsort((events["row"], *values, events["time"], events["device"])))
    first = _changes(ordered["device"]) | _changes(ordered["time"])
    first[1:] |= (ordered["values"][1:] != ordered["values"][:-1]).any(axis=1)
    return ordered[first], ordered["row"][~first]


def choose(events: Events, rules: Mapping[str, Rule]) -> tuple[Devices, dict[str, Whole]]:
    """The devices, ascending, and the chosen position for each attribute (UNKNOWN if no event has a known value).

    The events are in the order of devices and times. Of sets, `every` position is chosen.

    >>> events = np.array([(2, 7, 50, [1]), (3, 7, 60, [0]), (4, 7, 70, [1]), (5, 9, 10, [2])], dtype=event_type(1))
    >>> {rule.value: choose(events, {"area": rule})[1]["area"].tolist() for rule in Rule}
    {'first': [1, 2], 'last': [1, 2], 'most': [1, 2], 'every': [[1, 0, 1], [2, -1, -1]]}
    """
    device, time = np.ascontiguousarray(events["device"]), np.ascontiguousarray(events["time"])
    devices = device[_changes(device)]
    chosen: dict[str, Whole] = {}
    for i, (name, rule) in enumerate(rules.items()):
        column = np.ascontiguousarray(events["values"][:, i])
        known = column != UNKNOWN
        if rule is Rule.EVERY:
            chosen[name] = table_of_sets(np.searchsorted(devices, device[known]), column[known], len(devices))
            continue
        pick = _most if rule is Rule.MOST else _first if rule is Rule.FIRST else _last
        owners, places = pick(device[known], time[known], column[known])
        chosen[name] = np.full(len(devices), UNKNOWN, dtype=np.int64)
        chosen[name][np.searchsorted(devices, owners)] = places
    return devices, chosen


Picked = tuple[Devices, NDArray[Any]]


def _first(device: Devices, time: NDArray[Any], place: NDArray[Any]) -> Picked:
    """The lowest position of each device's first time."""
    moments = np.flatnonzero(_changes(device) | _changes(time))
    lowest = np.minimum.reduceat(place, moments) if len(moments) else place
    begin = _changes(device[moments])
    return device[moments][begin], lowest[begin]


def _last(device: Devices, time: NDArray[Any], place: NDArray[Any]) -> Picked:
    """The highest position of each device's last time."""
    owners, places = _first(device[::-1], time[::-1], -place[::-1])
    return owners[::-1], -places[::-1]


def _most(device: Devices, time: NDArray[Any], place: NDArray[Any]) -> Picked:
    """The most frequent position of each device, of several the lowest."""
    order = np.lexsort((place, device))
    place = place[order]
    runs = np.flatnonzero(_changes(device) | _changes(place))
    lengths = np.diff(np.append(runs, len(device)))
    device, place = device[runs], place[runs]
    order = np.lexsort((place, -lengths, device))
    begin = _changes(device)
    return device[begin], place[order][begin]


def _changes(column: NDArray[Any]) -> Mask:
    """Where a run of equal values begins."""
    out = np.ones(len(column), dtype=bool)
    out[1:] = column[1:] != column[:-1]
    return out
