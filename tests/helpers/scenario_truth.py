"""The truth of a scenario by brute force: histograms, and the different devices of a window."""

import numpy as np

from producers.scenarios import Presences, Scenario
from protocols.arrays import Devices, Whole


def true_histogram(presences: Presences, attribute: str, k: int) -> Whole:
    """The number of present devices with each of the attribute's k values."""
    return np.bincount(presences.values[attribute], minlength=k)


def unique_devices(scenario: Scenario, first: int, last: int) -> Devices:
    """The different devices present in at least one of the periods first..last, ascending."""
    return np.unique(np.concatenate([scenario.presences(period).devices for period in range(first, last + 1)]))


def unique_histogram(scenario: Scenario, attribute: str, first: int, last: int) -> Whole:
    """The unique devices of periods first..last by each one's first value in the window (PROTOCOLS 7)."""
    values: dict[int, int] = {}
    for period in range(first, last + 1):
        there = scenario.presences(period)
        for device, value in zip(there.devices.tolist(), there.values[attribute].tolist(), strict=True):
            values.setdefault(device, value)
    return np.bincount(list(values.values()), minlength=len(scenario.attributes[attribute]))
