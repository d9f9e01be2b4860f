"""All scenarios, by name.

>>> truth = scenario("telemetry", devices=100, periods=2, seed=3)
>>> truth.name, truth.devices, truth.periods
('telemetry', 100, 2)
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from producers.scenarios.base import Scenario
from protocols.errors import ScenarioError

# A scenario is imported when it is built, so that the command line can list their names quickly.
SCENARIOS = {
    "telemetry": "producers.scenarios.telemetry:Telemetry",
    "virtual-humans": "producers.scenarios.virtual_humans:VirtualHumans",
    "commuters": "producers.scenarios.commuters:Commuters",
    "demand": "producers.scenarios.demand:Demand",
}


def scenario(
    name: str, *, devices: int | None = None, periods: int | None = None, seed: int = 0, **options: Any
) -> Scenario:
    """Build a scenario. Options that are left out have that scenario's own defaults; its docstring explains them.

    >>> scenario("festival")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    protocols.errors.ScenarioError: there is no scenario 'festival' (known scenarios: telemetry, ...)
    """
    if name not in SCENARIOS:
        raise ScenarioError(f"there is no scenario {name!r}", f"known scenarios: {', '.join(SCENARIOS)}")
    module, _, class_name = SCENARIOS[name].partition(":")
    build: Callable[..., Scenario] = getattr(import_module(module), class_name)
    given = {"devices": devices, "periods": periods} | options
    return build(seed=seed, **{option: value for option, value in given.items() if value is not None})
