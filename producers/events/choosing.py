"""One value per person, attribute and period, out of many events.

The choice depends on the set of events, not on the order they were read in, nor on how often each was read. So events
that were read in several places are merged by putting them together, and no more needs to be kept of an open period
than its events. Events of the same time are ordered by the positions of their values, and of equally frequent values,
or equally long stays, the one with the lower position is chosen.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from producers.events.stays import Stays
from producers.files.answers import origins_and_destinations
from protocols.arrays import Devices, Mask, Whole
from protocols.errors import ReplayError
from protocols.respondent import UNKNOWN
from protocols.survey import Attribute, table_of_sets

Events = NDArray[np.void]
"""Row number, device, time and values (one position per attribute, or UNKNOWN); see `event_type`."""


class Rule(StrEnum):
    FIRST = "first"
    LAST = "last"
    MOST = "most"
    LONGEST = "longest"
    """That of the longest stay: a run of events with one value, which ends when the next run begins."""
    TRANSITION = "transition"
    """From the first place to the last one; its column has places, not transitions."""
    EVERY = "every"
    """All of them: for sets, and for nothing else."""


class Chooser:
    """Chooses what is reported of the events of a period, one period after the other."""

    def __init__(
        self, attributes: Sequence[Attribute], rules: Mapping[str, Rule], positions: Mapping[str, object]
    ) -> None:
        usual = {a.name: Rule.LAST if a.several is None else Rule.EVERY for a in attributes}
        self.rules = {**usual, **rules}
        for name, rule in self.rules.items():
            if Rule.EVERY in (rule, usual[name]) and rule is not usual[name]:
                raise ReplayError(f"{name}: `every` value is for sets, and for nothing else", "leave --choose out")
        self.stays = Stays(attributes, positions)
        self._transitions: dict[str, Whole] = {}
        """By origin and destination: the position of the transition, or UNKNOWN if it is not listed."""
        for attribute in attributes:
            if self.rules[attribute.name] is Rule.TRANSITION:
                if attribute.role != "transition":
                    raise ReplayError(
                        f"attribute {attribute.name!r} is not chosen as a transition: its role is {attribute.role}",
                        "give it the role transition and values such as north>south, or choose first, last, most or "
                        "longest",
                    )
                pairs, names = origins_and_destinations(attribute)
                table = np.full((len(names), len(names)), UNKNOWN, dtype=np.int64)
                for position, (origin, destination) in enumerate(pairs):
                    table[names.index(origin), names.index(destination)] = position
                self._transitions[attribute.name] = table

    def choose(self, events: Events) -> tuple[Devices, dict[str, Whole], Whole]:
        """All events of some devices in a period become their values.

        Returns the devices, ascending, the position of each attribute's value, and the rows of events that were there
        before.
        """
        events, again = without_duplicates(events)
        self.stays.settle(events)
        devices, values = choose(events, self.rules, self._transitions)
        self.stays.fill(devices, values)
        return devices, values, again


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


def choose(
    events: Events, rules: Mapping[str, Rule], transitions: Mapping[str, Whole] | None = None
) -> tuple[Devices, dict[str, Whole]]:
    """The devices, ascending, and the chosen position for each attribute (UNKNOWN if no event has a known value).

    The events are in the order of devices and times. `transitions` has the position of each pair of places. Of sets,
    `every` position is chosen.

    >>> events = np.array([(2, 7, 50, [1]), (3, 7, 60, [0]), (4, 7, 75, [1]), (5, 9, 10, [2])], dtype=event_type(1))
    >>> {rule.value: choose(events, {"area": rule})[1]["area"].tolist() for rule in PICKED_BY}
    {'first': [1, 2], 'last': [1, 2], 'most': [1, 2], 'longest': [0, 2]}
    """
    device, time = np.ascontiguousarray(events["device"]), np.ascontiguousarray(events["time"])
    devices = device[_changes(device)]

    def picked(column: NDArray[Any], rule: Rule) -> Whole:
        known = column != UNKNOWN
        owners, places = PICKED_BY[rule](device[known], time[known], column[known])
        found = np.full(len(devices), UNKNOWN, dtype=np.int64)
        found[np.searchsorted(devices, owners)] = places
        return found

    chosen: dict[str, Whole] = {}
    for i, (name, rule) in enumerate(rules.items()):
        column = np.ascontiguousarray(events["values"][:, i])
        if rule is Rule.EVERY:
            known = column != UNKNOWN
            # Each value once: otherwise all rows of the table were as long as the events of the busiest device.
            owners, items = np.unique(np.stack([np.searchsorted(devices, device[known]), column[known]]), axis=1)
            chosen[name] = table_of_sets(owners, items, len(devices))
        elif rule is Rule.TRANSITION:
            origin, destination = picked(column, Rule.FIRST), picked(column, Rule.LAST)
            known = origin != UNKNOWN
            chosen[name] = np.where(known, (transitions or {})[name][origin, destination], UNKNOWN)
        else:
            chosen[name] = picked(column, rule)
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


def _longest(device: Devices, time: NDArray[Any], place: NDArray[Any]) -> Picked:
    """The position of each device's longest stay, of several the lowest. The last stay ends with its last event."""
    order = np.lexsort((place, time, device))
    time, place = time[order], place[order]
    begin = np.flatnonzero(_changes(device) | _changes(place))
    last = np.append(begin[1:], len(device)) - 1  # the last event of each stay
    ends = np.append(_changes(device)[begin[1:]], [True] * (len(begin) > 0))  # whether it is the device's last stay
    end = np.where(ends, time[last], time[np.minimum(last + 1, len(time) - 1)])
    device, place = device[begin], place[begin]
    order = np.lexsort((place, time[begin] - end, device))
    first = _changes(device)
    return device[first], place[order][first]


PICKED_BY = {Rule.FIRST: _first, Rule.LAST: _last, Rule.MOST: _most, Rule.LONGEST: _longest}


def _changes(column: NDArray[Any]) -> Mask:
    """Where a run of equal values begins."""
    out = np.ones(len(column), dtype=bool)
    out[1:] = column[1:] != column[:-1]
    return out
