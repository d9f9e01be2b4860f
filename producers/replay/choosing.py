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

from producers.replay.files.answers import UNKNOWN
from protocols.randomness import Devices

Events = NDArray[np.void]
"""Row number, device, time and values (one position per attribute, or UNKNOWN); see `event_type`."""


class Rule(StrEnum):
    FIRST = "first"
    LAST = "last"
    MOST = "most"


def event_type(attributes: int) -> np.dtype[np.void]:
    return np.dtype([("row", "<i8"), ("device", "<u8"), ("time", "<i8"), ("values", "<i4", (attributes,))])


def without_duplicates(events: Events) -> tuple[Events, NDArray[np.int64]]:
    """The events without duplicates (the first of each stays), and the rows of the duplicates."""
    values = [events["values"][:, i] for i in reversed(range(events["values"].shape[1]))]
    ordered = events[np.lexsort((events["row"], *values, events["time"], events["device"]))]
    same = np.zeros(len(ordered), dtype=bool)
    before, after = ordered[:-1], ordered[1:]
    same[1:] = (
        (before["device"] == after["device"])
        & (before["time"] == after["time"])
        & (before["values"] == after["values"]).all(axis=1)
    )
    return ordered[~same], ordered["row"][same]


def choose(events: Events, rules: Mapping[str, Rule]) -> tuple[Devices, dict[str, NDArray[np.int64]]]:
    """The devices, ascending, and the chosen position for each attribute (UNKNOWN if no event has a known value).

    >>> events = np.array([(2, 7, 50, [1]), (3, 7, 60, [0]), (4, 7, 70, [1]), (5, 9, 10, [2])], dtype=event_type(1))
    >>> {rule.value: choose(events, {"area": rule})[1]["area"].tolist() for rule in Rule}
    {'first': [1, 2], 'last': [1, 2], 'most': [1, 2]}
    """
    devices = np.unique(events["device"])
    chosen = {}
    for i, (name, rule) in enumerate(rules.items()):
        column = events["values"][:, i]
        known = column != UNKNOWN
        owners, places = _pick(events["device"][known], events["time"][known], column[known], rule)
        chosen[name] = np.full(len(devices), UNKNOWN, dtype=np.int64)
        chosen[name][np.searchsorted(devices, owners)] = places
    return devices, chosen


def _pick(device: Devices, time: NDArray[Any], place: NDArray[Any], rule: Rule) -> tuple[Devices, NDArray[Any]]:
    if rule is Rule.MOST:
        order = np.lexsort((place, device))
        device, place = device[order], place[order]
        runs = np.flatnonzero(_changes(device) | _changes(place))
        lengths = np.diff(np.append(runs, len(device)))
        device, place = device[runs], place[runs]
        order = np.lexsort((place, -lengths, device))
    else:
        order = np.lexsort((place, time, device))
    device, place = device[order], place[order]
    firsts = np.flatnonzero(_changes(device))
    ends = np.append(firsts[1:], len(device)) - 1 if rule is Rule.LAST else firsts
    return device[firsts], place[ends[: len(firsts)]]


def _changes(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a run of equal values begins."""
    out = np.ones(len(column), dtype=bool)
    out[1:] = column[1:] != column[:-1]
    return out
