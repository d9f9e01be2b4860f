"""Whose values the audit's devices have: a scenario's people, the rows of a table, or coins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hearsay.running.simulating import populate
from lab.attacks.histories import Coins
from lab.tables import survey_values
from producers.fleet import check_scenario
from producers.scenarios import Presences, Scenario, scenario
from protocols.arrays import Mask, Values
from protocols.survey import Survey

STEADY = "steady"
"""The population of an audit if none is named: values never change and all devices report, which helps attackers."""


@dataclass
class People:
    """A scenario of the audit's own."""

    name: str
    devices: int
    periods: int
    attributes: dict[str, tuple[str, ...]]
    presences: Callable[[int], Presences]


def named(survey: Survey, name: str, devices: int | None, periods: int | None, seed: int) -> Scenario:
    """A scenario that fits a survey."""
    if name == STEADY:
        always: dict[str, Any] = {"change": 0.0, "presence": 1.0}
        attributes = {a.name: a.prior or a.values for a in survey.attributes}
        people = scenario("telemetry", devices=devices, periods=periods, seed=seed, attributes=attributes, **always)
        people.name = STEADY
    else:
        people = populate(survey, name, devices, periods, seed)
    check_scenario(survey, people)
    return people


def rows_of(survey: Survey, path: Path, periods: int) -> People:
    """A table with one row per person, whose values never change."""
    values = survey_values(path, survey)
    return everybody(survey, str(path), len(next(iter(values.values()))), periods, lambda period: values)


def of_coins(survey: Survey, coins: Coins, shown: Mask, periods: int) -> People:
    """Devices that have the values of one of two histories."""
    return everybody(survey, "coins", len(shown), periods, lambda period: coins.values(shown, period))


def everybody(
    survey: Survey, name: str, devices: int, periods: int, values: Callable[[int], Mapping[str, Values]]
) -> People:
    """Devices of which all report in every period."""

    def presences(period: int) -> Presences:
        columns = {name: column.astype(np.int64) for name, column in values(period).items()}
        return Presences(period, np.arange(devices, dtype=np.uint64), columns)

    return People(name, devices, periods, {a.name: a.values for a in survey.attributes}, presences)


def block(people: Scenario, first: int, last: int) -> People:
    """Devices first .. last-1 alone, numbered from 0."""

    def presences(period: int) -> Presences:
        truth = people.presences(period)
        inside = (truth.devices >= first) & (truth.devices < last)
        values = {name: column[inside] for name, column in truth.values.items()}
        return Presences(period, truth.devices[inside] - np.uint64(first), values)

    return People(people.name, last - first, people.periods, people.attributes, presences)


def tossed(devices: int, seed: int, what: int) -> Mask:
    """Fair coins, the same again for the same seed and experiment."""
    return np.asarray(np.random.default_rng([seed, what, devices]).random(devices) < 0.5)
