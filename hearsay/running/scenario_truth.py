"""The truth of a simulated collection (`demo`, `run`): what its scenario knows about the windows of a report."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from analytics.mobility import MobilityReport, WindowTruth
from analytics.windows import Window
from producers.scenarios import Scenario
from protocols.arrays import Places, Whole, smallest_unsigned
from protocols.survey import TIMES

NEVER = -1


def population_digest(scenario: Scenario) -> str:
    """Identifies the population of a scenario: a digest of the devices and values of its first period."""
    first = scenario.presences(0)
    digest = sha256(first.devices.tobytes())
    for name, values in sorted(first.values.items()):
        digest.update(name.encode())
        digest.update(values.astype(smallest_unsigned(len(scenario.attributes[name]))).tobytes())
    return f"{scenario.name} {digest.hexdigest()[:16]}"


def true_windows(scenario: Scenario, report: MobilityReport) -> dict[Window, WindowTruth]:
    """The truth of the report's windows, as far as the scenario goes."""
    windows = [Window(window.first, window.last) for window in report.windows]
    crosses = [(one.name, second.name) for one, second in (asked.axes for asked in report.attributes if asked.axes)]
    return count_windows(scenario, [window for window in windows if window.last < scenario.periods], crosses)


def count_windows(
    scenario: Scenario, windows: Iterable[Window], crosses: Iterable[tuple[str, str]] = ()
) -> dict[Window, WindowTruth]:
    """The different devices of each window, by their first value in it (PROTOCOLS 7). Simulates each period once.

    `crosses` are pairs of attributes whose pairs of values are counted, too.

    A presence is its device's first in a window if the window began after the device's previous presence. So the
    presences of a period are grouped by how many of the open windows' beginnings lie up to that previous presence; a
    cumulative sum over the groups then gives the first presences for every beginning.
    """
    visitors = dict.fromkeys(windows, 0)
    sizes = {name: len(values) for name, values in scenario.attributes.items()}
    both = {TIMES.join(pair): pair for pair in crosses}
    sizes |= {name: sizes[first] * sizes[second] for name, (first, second) in both.items()}
    people = {window: {name: np.zeros(k, dtype=np.int64) for name, k in sizes.items()} for window in visitors}
    previous = np.full(scenario.devices, NEVER)
    for period, opened in _open_windows(visitors).items():
        presences = scenario.presences(period)
        beginnings = sorted({window.first for window in opened})
        group = np.searchsorted(beginnings, previous[presences.devices], side="right")
        devices = _cumulative(group, np.zeros_like(group), len(beginnings), 1)[:, 0]
        held = {name: column.astype(np.int64) for name, column in presences.values.items()}
        held |= {name: held[first] * sizes[second] + held[second] for name, (first, second) in both.items()}
        values = {name: _cumulative(group, held[name], len(beginnings), k) for name, k in sizes.items()}
        for window in opened:
            row = beginnings.index(window.first)
            visitors[window] += int(devices[row])
            for name, table in values.items():
                people[window][name] += table[row]
        previous[presences.devices] = period
    return {window: WindowTruth(count, people[window]) for window, count in visitors.items()}


def _open_windows(windows: Iterable[Window]) -> dict[int, list[Window]]:
    """The windows that contain each period, in the order of periods; periods outside all windows are left out."""
    containing: dict[int, list[Window]] = {}
    for window in windows:
        for period in range(window.first, window.last + 1):
            containing.setdefault(period, []).append(window)
    return dict(sorted(containing.items()))


def _cumulative(group: Places, values: Whole, groups: int, k: int) -> NDArray[np.int64]:
    """How many of those in groups 0 .. row have each value: `[row, value]`."""
    cells = group * k + values
    counts = np.bincount(cells, minlength=(groups + 1) * k).reshape(groups + 1, k)
    return np.asarray(np.cumsum(counts, axis=0))
