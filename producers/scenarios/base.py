"""All scenarios by name, and their interface: for any period, which devices are present, and their true values.

A scenario is the truth of a simulation, which a collector never sees. It is kept apart from reports so that accuracy
can be measured. It is a pure function of its options and its seed: a period is the same whenever and in whatever order
it is computed. Seeded pseudo-randomness is safe here, because nothing private depends on it (PROTOCOLS 8 is about
reports).

>>> truth = scenario("telemetry", devices=100, periods=2, seed=3)
>>> truth.name, truth.devices, truth.periods
('telemetry', 100, 2)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Protocol

import numpy as np

from protocols.arrays import Whole, Words
from protocols.errors import ScenarioError

MOST_DEVICES = 10**9
# A scenario is imported when it is built, so that the command line can list their names quickly.
SCENARIOS = {
    "telemetry": "producers.scenarios.telemetry:Telemetry",
    "virtual-humans": "producers.scenarios.virtual_humans:VirtualHumans",
    "commuters": "producers.scenarios.commuters:Commuters",
    "demand": "producers.scenarios.demand:Demand",
}


@dataclass(frozen=True, eq=False)
class Presences:
    """One period's truth: which devices are present, and their value of every attribute."""

    period: int
    devices: Words
    """Distinct indices in 0..N-1 of the devices present, ascending."""
    values: Mapping[str, Whole]
    """Attribute name -> position of the value in the attribute's list of values; aligned with `devices`.

    Of sets a row of positions for each device, filled with NOTHING.
    """


class Scenario(Protocol):
    """A population over time."""

    name: str
    devices: int
    """The number of devices in all periods together."""
    periods: int
    attributes: dict[str, tuple[str, ...]]
    """Attribute name -> the names of its values, in order. A survey must list the same."""

    def presences(self, period: int) -> Presences:
        """The truth of one of these periods, in memory proportional to the number of devices."""
        ...


def randomness(seed: int, purpose: str, index: int = 0) -> np.random.Generator:
    """An independent generator for each purpose and index (for example a period) of one seed.

    >>> randomness(7, "presence", 3).integers(100) == randomness(7, "presence", 3).integers(100)
    np.True_
    >>> bool((randomness(7, "presence", 3).random(4) == randomness(7, "presence", 4).random(4)).any())
    False
    """
    check_at_least(0, seed=seed)
    key = (int.from_bytes(purpose.encode(), "little"), index)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def check_size(devices: int, periods: int) -> None:
    """Refuse an empty population, and one so large that products of counts would overflow."""
    check_at_least(1, devices=devices, periods=periods)
    if devices > MOST_DEVICES:
        raise ScenarioError(f"devices = {devices} is too large", f"at most {MOST_DEVICES}")


def check_at_least(least: int, **options: int) -> None:
    """Refuse an option below its smallest valid value, by name.

    >>> check_at_least(1, devices=0)
    Traceback (most recent call last):
    protocols.errors.ScenarioError: devices = 0 is too small (at least 1)
    """
    for name, value in options.items():
        if value < least:
            raise ScenarioError(f"{name} = {value} is too small", f"at least {least}")


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
    build: Callable[..., Scenario] = resolve_name(SCENARIOS[name])
    given = {"devices": devices, "periods": periods} | options
    return build(seed=seed, **{option: value for option, value in given.items() if value is not None})
