"""A simulated population, collected end to end: what `demo` and `run` do. The truth is what its scenario knows."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from analytics.mobility import MobilityReport, WindowTruth
from analytics.windows import Window
from hearsay.data_directory import DataDirectory
from hearsay.reports.files import (
    keep_truth,
    mobility_of,
    next_period,
    require_results,
    wait_for_final,
    with_noted_losses,
)
from hearsay.running.collecting import collect
from hearsay.survey_files import rehearsal_id
from hearsay.terminal.console import Step, no_step
from hearsay.terminal.dates import when
from producers.reporting import Reported
from producers.scenarios import Scenario, scenario
from producers.simulation import Simulation, check_scenario
from producers.stopping import Stop, never
from protocols.arrays import smallest_unsigned
from protocols.errors import Stopped
from protocols.survey import NEVER, TIMES, Survey, Thresholds, count_values
from servers.settings import load


def populate(
    survey: Survey, name: str, devices: int | None, periods: int | None, seed: int, **options: Any
) -> Scenario:
    """A scenario for a survey, with options of its own.

    Telemetry has no values of its own: it takes the survey's, and its priors. Commuters live on the survey's grid.
    """
    if name == "telemetry":
        options["attributes"] = {a.name: a.prior or a.values for a in survey.attributes}
        options["several"] = {a.name: a.several for a in survey.attributes if a.several is not None}
    grid = next((a.grid for a in survey.attributes if a.grid is not None), None)
    if name == "commuters" and grid is not None:
        options |= {"rows": grid.rows, "columns": grid.columns, "inside": grid.area.inside}
    return scenario(name, devices=devices, periods=periods, seed=seed, **options)


def rehearsal(survey: Survey) -> Survey:
    """The survey, if a simulation can close its periods; otherwise a copy with `clock: source` and an id of its own.

    The copy has other terms, and therefore other noise: a rehearsal shows nothing about the answers of real devices.
    """
    if survey.clock == "source":
        return survey
    return Survey.model_validate(survey.model_dump() | {"id": rehearsal_id(survey.id), "clock": "source"})


def simulate(
    survey: Survey,
    scenario: Scenario,
    directory: Path,
    kafka: str | None = None,
    step: Step = no_step,
    stop: Stop = never,
) -> MobilityReport:
    """Collect the scenario's periods, from where an earlier run stopped; everything published, beside the truth."""
    check_scenario(survey, scenario)
    data, population = DataDirectory(directory), population_digest(scenario)
    data.check_population(survey.id, population)

    def show(reported: Reported) -> None:
        day = when(survey.calendar, reported.period)
        step(reported.done, reported.present, f"{day}, {reported.period + 1} of {scenario.periods}")

    with collect(data, survey, load(), kafka) as to:
        data.record_population(survey.id, population)
        results, simulation = to.results, Simulation(to.memos, to.sink, scenario, to.clock_key)
        assert results is not None, "nothing is captured"
        try:
            simulation.run(range(next_period(results, survey.id), scenario.periods), show, stop)
        except Stopped as stopped:
            raise Stopped(stopped.message, "run the same command again to continue from there") from None
        if kafka is not None:
            wait_for_final(results, survey.id, scenario.periods - 1, step)
        report = mobility_of(results, survey.id)
        keep_truth(directory, survey.id, true_windows(scenario, report, survey))
        require_results(results, survey.id)
    return with_noted_losses(report, directory)


def population_digest(scenario: Scenario) -> str:
    """Identifies the population of a scenario: a digest of the devices and values of its first period."""
    first = scenario.presences(0)
    digest = sha256(first.devices.tobytes())
    for name, values in sorted(first.values.items()):
        digest.update(name.encode())
        digest.update(values.astype(smallest_unsigned(len(scenario.attributes[name]))).tobytes())
    return f"{scenario.name} {digest.hexdigest()[:16]}"


def true_windows(scenario: Scenario, report: MobilityReport, survey: Survey) -> dict[Window, WindowTruth]:
    """The truth of the report's windows, as far as the scenario goes. Of thresholds, how many are above each slot."""
    windows = [Window(window.first, window.last) for window in report.windows]
    crosses = [(one.name, second.name) for one, second in (asked.axes for asked in report.attributes if asked.axes)]
    truths = count_windows(scenario, [window for window in windows if window.last < scenario.periods], crosses)
    numbers = [asked for asked in survey.asked if isinstance(asked, Thresholds)]

    def above(truth: WindowTruth) -> WindowTruth:
        found = {a.name: np.rint(a.people_above(truth.people[a.name])).astype(np.int64) for a in numbers}
        return replace(truth, people={**truth.people, **found})

    return {window: above(truth) for window, truth in truths.items()}


def count_windows(
    scenario: Scenario, windows: Iterable[Window], crosses: Iterable[tuple[str, str]] = ()
) -> dict[Window, WindowTruth]:
    """The different devices of each window, by their first value in it (PROTOCOLS 7). Simulates each period once.

    `crosses` are pairs of attributes whose pairs of values are counted, too. A presence is its device's first in a
    window if the window began after the device's previous presence.
    """
    visitors = dict.fromkeys(windows, 0)
    sizes = {name: len(values) for name, values in scenario.attributes.items()}
    both = {TIMES.join(pair): pair for pair in crosses}
    sizes |= {name: sizes[first] * sizes[second] for name, (first, second) in both.items()}
    people = {window: {name: np.zeros(k, dtype=np.int64) for name, k in sizes.items()} for window in visitors}
    previous = np.full(scenario.devices, NEVER)
    for period in sorted({period for window in visitors for period in range(window.first, window.last + 1)}):
        presences = scenario.presences(period)
        held = {name: column.astype(np.int64) for name, column in presences.values.items()}
        held |= {name: held[first] * sizes[second] + held[second] for name, (first, second) in both.items()}
        for window in (window for window in visitors if window.first <= period <= window.last):
            new = previous[presences.devices] < window.first
            visitors[window] += int(np.count_nonzero(new))
            for name, k in sizes.items():
                people[window][name] += count_values(held[name][new], k)
        previous[presences.devices] = period
    return {window: WindowTruth(count, people[window]) for window, count in visitors.items()}
