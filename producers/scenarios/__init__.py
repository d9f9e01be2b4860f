"""Scenarios: the truth of simulations."""

from producers.scenarios.base import Presences, Scenario
from producers.scenarios.catalogue import SCENARIOS, scenario
