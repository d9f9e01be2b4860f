"""Scenarios: the truth a simulation knows. Ask for one by name.

>>> truth = scenario("telemetry", devices=100, periods=2, seed=3)
>>> truth.name, truth.devices, truth.periods
('telemetry', 100, 2)
"""

from __future__ import annotations

import inspect
from typing import Any

from producers.scenarios.base import Presences, Scenario
from producers.scenarios.commuters import Commuters
from producers.scenarios.telemetry import Telemetry
from producers.scenarios.truth import true_histogram, unique_devices, unique_histogram, write_truth
from producers.scenarios.virtual_humans import VirtualHumans
from protocols.errors import ScenarioError

__all__ = [
    "SCENARIOS",
    "Presences",
    "Scenario",
    "scenario",
    "true_histogram",
    "unique_devices",
    "unique_histogram",
    "write_truth",
]

SCENARIOS: dict[str, type[Telemetry | VirtualHumans | Commuters]] = {
    kind.name: kind for kind in (Telemetry, VirtualHumans, Commuters)
}


def scenario(
    name: str, *, devices: int | None = None, periods: int | None = None, seed: int = 0, **options: Any
) -> Scenario:
    """Build a scenario. What is left out takes that scenario's own default; its docstring explains the options.

    >>> scenario("festival")
    Traceback (most recent call last):
    protocols.errors.ScenarioError: there is no scenario 'festival' (there are: telemetry, virtual-humans, commuters)
    >>> scenario("telemetry", chrun=0.1)
    Traceback (most recent call last):
    protocols.errors.ScenarioError: telemetry has no option 'chrun' (it has: attributes, change, presence, churn)
    """
    if name not in SCENARIOS:
        raise ScenarioError(f"there is no scenario {name!r}", f"there are: {', '.join(SCENARIOS)}")
    kind = SCENARIOS[name]
    own = [
        parameter.name
        for parameter in inspect.signature(kind).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for option in options:
        if option not in own:
            raise ScenarioError(f"{name} has no option {option!r}", f"it has: {', '.join(own)}")
    given = {"devices": devices, "periods": periods} | options
    return kind(seed=seed, **{option: value for option, value in given.items() if value is not None})
