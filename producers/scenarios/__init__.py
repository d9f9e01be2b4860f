"""Scenarios: the truth of simulations."""

from producers.scenarios.base import Presences, Scenario
from producers.scenarios.catalogue import SCENARIOS, scenario
from producers.scenarios.truth import unique_devices, unique_histogram

__all__ = ["SCENARIOS", "Presences", "Scenario", "scenario", "unique_devices", "unique_histogram"]
