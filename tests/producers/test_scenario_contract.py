"""What the fleet relies on, asked of every scenario there is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from producers.scenarios import SCENARIOS, Scenario, scenario
from producers.scenarios.base import Presences
from protocols.errors import ScenarioError

DEVICES, PERIODS = 2_000, 6


def build(name: str, seed: int = 5) -> Scenario:
    return scenario(name, devices=DEVICES, periods=PERIODS, seed=seed)


def same(one: Presences, other: Presences) -> bool:
    listed, others = (
        [p.period, p.devices.tolist(), {n: v.tolist() for n, v in p.values.items()}] for p in (one, other)
    )
    return listed == others


every_scenario = pytest.mark.parametrize("name", SCENARIOS)


@every_scenario
def test_presences_are_distinct_ascending_devices_with_a_value_of_every_attribute(name: str) -> None:
    truth = build(name)
    assert (truth.name, truth.devices, truth.periods) == (name, DEVICES, PERIODS)
    for period in range(PERIODS):
        presences = truth.presences(period)
        assert presences.period == period
        assert presences.devices.dtype == np.uint64
        assert len(presences.devices) > 0
        assert presences.devices.max() < DEVICES
        assert (np.diff(presences.devices.astype(np.int64)) > 0).all()
        assert list(presences.values) == list(truth.attributes)
        for attribute, values in presences.values.items():
            assert values.dtype == np.int64
            assert values.shape == presences.devices.shape
            assert 0 <= values.min() <= values.max() < len(truth.attributes[attribute])


@every_scenario
def test_a_period_is_the_same_whenever_and_in_whatever_order_it_is_asked_for(name: str) -> None:
    forwards = build(name)
    expected = [forwards.presences(period) for period in range(PERIODS)]
    jumping = build(name)
    for period in (4, 1, 1, 5, 0, 2, 3, 4):
        assert same(jumping.presences(period), expected[period])


@every_scenario
def test_another_seed_is_another_population(name: str) -> None:
    assert not same(build(name, seed=5).presences(2), build(name, seed=6).presences(2))


@every_scenario
def test_what_a_caller_does_to_a_period_does_not_change_the_truth(name: str) -> None:
    truth = build(name)
    taken = truth.presences(3)
    taken.devices[:] = 0
    for values in taken.values.values():
        values[:] = 0
    assert same(truth.presences(3), build(name).presences(3))


@every_scenario
@pytest.mark.parametrize(("option", "value"), [("devices", 0), ("periods", 0), ("devices", 10**15), ("seed", -1)])
def test_sizes_and_seeds_that_mean_nothing_are_refused_by_name(name: str, option: str, value: int) -> None:
    with pytest.raises(ScenarioError, match=f"{option} = {value}"):
        scenario(name, **{option: value})


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("commuters", {"rows": 100, "columns": 100}, "100 by 100 has too many areas"),
        ("virtual-humans", {"periods": 8}, "periods = 8, but the table has 7 days"),
    ],
)
def test_options_that_mean_nothing_are_refused(name: str, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        scenario(name, **options)


@every_scenario
@pytest.mark.parametrize("command", ["run", "evaluate"])
def test_the_help_of_a_command_names_every_scenario(command: str, name: str) -> None:
    shown = (Path(__file__).parents[1] / "hearsay" / "help" / f"{command}.txt").read_text()
    assert name in shown
