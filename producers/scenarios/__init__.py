"""Scenarios: the truth of simulations."""

from producers.scenarios.base import Scenario
from producers.scenarios.catalogue import scenario
from producers.scenarios.truth import unique_devices, unique_histogram

__all__ = ["Scenario", "scenario", "unique_devices", "unique_histogram"]
