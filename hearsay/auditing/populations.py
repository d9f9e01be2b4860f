"""Whose values the audit's devices have: a scenario's people, the rows of a table, or coins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from audit.measured import Coins
from hearsay.auditing.devices import Truths
from hearsay.running.evaluation_truth import read_table
from producers.fleet import check_scenario
from producers.scenarios import Presences, Scenario, scenario
from protocols.arrays import Devices, Floats, Mask
from protocols.errors import ScenarioError
from protocols.survey import Survey

STEADY = "steady"
"""The population of an audit if none is named: values never change and all devices report, which helps attackers."""


def named(survey: Survey, name: str, devices: int | None, periods: int | None, seed: int) -> Scenario:
    """A scenario that fits a survey."""
    attributes = {a.name: a.prior or a.values for a in survey.attributes}
    if name == STEADY:
        always = {"change": 0.0, "presence": 1.0}
        people = scenario("telemetry", devices=devices, periods=periods, seed=seed, attributes=attributes, **always)
        people.name = STEADY
    else:
        own = {"attributes": attributes} if name == "telemetry" else {}
        people = scenario(name, devices=devices, periods=periods, seed=seed, **own)
    check_scenario(survey, people)
    return people


class Rows:
    """A table with one row per person, whose values never change."""

    def __init__(self, survey: Survey, path: Path, periods: int) -> None:
        self.name, self.periods = str(path), periods
        self.attributes = {attribute.name: attribute.values for attribute in survey.attributes}
        self.values = read_rows(survey, path)
        self.devices = len(next(iter(self.values.values())))

    def presences(self, period: int) -> Presences:
        return Presences(period, np.arange(self.devices, dtype=np.uint64), dict(self.values))


def read_rows(survey: Survey, path: Path) -> dict[str, NDArray[np.int64]]:
    """The values of a table, by attribute: places in the survey's lists."""
    table = read_table(path)
    values: dict[str, NDArray[np.int64]] = {}
    for attribute in survey.attributes:
        if attribute.name not in table.column_names:
            raise ScenarioError(f"{path} has no column {attribute.name!r}", "name its columns like the attributes")
        column = table[attribute.name].combine_chunks().dictionary_encode()
        known = {value: place for place, value in enumerate(attribute.values)}
        missing = [value for value in column.dictionary.to_pylist() if value not in known]
        if missing:
            raise ScenarioError(
                f"{path}: column {attribute.name!r} has {len(missing)} value(s) that the survey does not list",
                "list all values in the survey, or change the table",
            )
        places = np.array([known[value] for value in column.dictionary.to_pylist()])
        values[attribute.name] = places[column.indices.to_numpy()].astype(np.int64)
    return values


def block(people: Scenario, first: int, last: int) -> Truths:
    """The truth of devices first .. last-1 alone, numbered from 0."""

    def truths(period: int) -> Presences:
        truth = people.presences(period)
        inside = (truth.devices >= first) & (truth.devices < last)
        values = {name: column[inside] for name, column in truth.values.items()}
        return Presences(period, truth.devices[inside] - np.uint64(first), values)

    return truths


def tossed(devices: int, seed: int, what: int) -> Mask:
    """Fair coins, the same again for the same seed and experiment."""
    coins: Floats = np.random.default_rng([seed, what, devices]).random(devices)
    return np.asarray(coins < 0.5)


def of_coins(coins: Coins, shown: Mask) -> Truths:
    """Devices that have the values of one of two histories."""
    everybody: Devices = np.arange(len(shown), dtype=np.uint64)

    def truths(period: int) -> Presences:
        values = coins.values(shown, period)
        return Presences(period, everybody, {name: column.astype(np.int64) for name, column in values.items()})

    return truths
