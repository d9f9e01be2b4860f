"""What a simulation knows, in the shape of what was estimated."""

from __future__ import annotations

from hashlib import sha256

from analytics.mobility import MobilityReport, WindowTruth
from analytics.windows import Window
from producers.scenarios import Scenario, unique_devices, unique_histogram


def likeness(scenario: Scenario) -> str:
    """What tells a population from others: a digest of who is there at first, and what is true of them."""
    first = scenario.presences(0)
    digest = sha256(first.devices.tobytes())
    for name, values in sorted(first.values.items()):
        digest.update(name.encode() + values.tobytes())
    return f"{scenario.name} {digest.hexdigest()[:16]}"


def true_windows(scenario: Scenario, report: MobilityReport) -> dict[Window, WindowTruth]:
    """The truth of every window of a report."""
    windows = [Window(window.first, window.last) for window in report.windows]
    return {window: _truth(scenario, window) for window in windows if window.last < scenario.periods}


def _truth(scenario: Scenario, window: Window) -> WindowTruth:
    people = {name: unique_histogram(scenario, name, window.first, window.last) for name in scenario.attributes}
    return WindowTruth(len(unique_devices(scenario, window.first, window.last)), people)
