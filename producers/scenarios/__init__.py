"""Scenarios: the truth of simulations."""

from producers.scenarios.base import SCENARIOS, Presences, Scenario, scenario
