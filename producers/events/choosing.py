"""One value per person, attribute and period, out of many events.

The choice depends on the set of events, not on the order they were read in, nor on how often each was read. So events
that were read in several places are merged by putting them together, and no more needs to be kept of an open period
than its events. Events of the same time are ordered by the positions of their values, and of equally frequent values,
or equally long stays, the one with the lower position is chosen.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from producers.files.answers import PARTS, QUARTERS, origins_and_destinations
from protocols.arrays import Devices, Mask, Whole
from protocols.errors import ReplayError
from protocols.respondent import UNKNOWN
from protocols.survey import Attribute, Grid, table_of_sets

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


class Stays:
    """Hysteresis: the last cells of all devices, for the attributes whose values are positions.

    A person keeps the last cell until a position is more than a quarter of a cell outside of it, as a device does.
    Positions are spooled as parts of cells, each a quarter of a side long, which decide whether a position is within a
    quarter of another cell. The last cells are true places: whoever stores them seals them.
    """

    def __init__(self, attributes: Sequence[Attribute], positions: Mapping[str, object]) -> None:
        self._grids = [
            (place, attribute.name, attribute.grid)
            for place, attribute in enumerate(attributes)
            if attribute.name in positions and attribute.grid is not None
        ]
        self._devices: Devices = np.empty(0, dtype=np.uint64)  # ascending
        self._cells = np.empty((0, len(self._grids)), dtype=np.int64)
        self._new: list[tuple[Devices, Whole]] = []

    def __bool__(self) -> bool:
        """Whether there is anything to remember: some values are positions."""
        return bool(self._grids)

    def settle(self, events: NDArray[np.void]) -> None:
        """Parts become cells: those of their positions, or the last one of their device if that is near enough."""
        for column, (place, _, grid) in enumerate(self._grids):
            parts = events["values"][:, place].astype(np.int64)
            last = self._last(events["device"], column)
            cells = np.where(parts == UNKNOWN, UNKNOWN, grid.area.nearest(np.maximum(parts, 0) // PARTS))
            stays = (parts != UNKNOWN) & (last != UNKNOWN)
            stays[stays] = near(grid, parts[stays], last[stays])
            events["values"][:, place] = np.where(stays, last, cells)

    def fill(self, devices: Devices, values: dict[str, Whole]) -> None:
        """Devices, ascending, without a position in this period are in their last cell, if there is one.

        What they report is noted, for `keep`.
        """
        for column, (_, name, _) in enumerate(self._grids):
            values[name] = np.where(values[name] == UNKNOWN, self._last(devices, column), values[name])
        if self._grids:
            self._new.append((devices, np.stack([values[name] for _, name, _ in self._grids], axis=1)))

    def keep(self) -> bytes:
        """Make the cells of this period the last ones, and return them all, for `restore`."""
        devices = np.concatenate([*(devices for devices, _ in self._new), self._devices])
        cells = np.concatenate([*(cells for _, cells in self._new), self._cells])
        self._devices, newest = np.unique(devices, return_index=True)  # who reports has a new cell, or the last one
        self._cells, self._new = cells[newest], []
        content = BytesIO()
        np.savez(content, devices=self._devices, cells=self._cells)
        return content.getvalue()

    def restore(self, kept: bytes) -> None:
        with np.load(BytesIO(kept), allow_pickle=False) as found:
            self._devices, self._cells = found["devices"], found["cells"]

    def forget(self) -> None:
        """Begin without last cells."""
        self._devices, self._cells = self._devices[:0], self._cells[:0]

    def _last(self, devices: Devices, column: int) -> Whole:
        if not len(self._devices):
            return np.full(len(devices), UNKNOWN, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._devices, devices), len(self._devices) - 1)
        return np.where(self._devices[place] == devices, self._cells[place, column], UNKNOWN)


def near(grid: Grid, parts: Whole, cells: Whole) -> Mask:
    """Whether positions are in their cells, or at most a quarter of a cell outside of them.

    >>> grid = Grid(at=(47, 6), cell=100, columns=4, rows=2)
    >>> near(grid, np.array([PARTS * 1 + 0, PARTS * 1 + 1, PARTS * 5 + 4]), np.array([0, 0, 1])).tolist()
    [True, False, False]
    """
    number, part = np.divmod(parts, PARTS)
    own = np.stack(np.divmod(number, grid.columns), axis=1)
    quarters = QUARTERS * own + np.stack(np.divmod(part, QUARTERS), axis=1)
    apart = quarters - QUARTERS * grid.area.positions[cells]
    return np.asarray(((apart >= -1) & (apart <= QUARTERS)).all(axis=1))


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
