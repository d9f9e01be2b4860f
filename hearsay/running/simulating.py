"""A simulated population, collected end to end: what `demo` and `run` do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analytics.mobility import MobilityReport, with_truth
from hearsay.data_directory import DataDirectory
from hearsay.reports.files import mobility_of, next_period, wait_for_final, with_noted_losses
from hearsay.running.collecting import Collection, collect
from hearsay.running.scenario_truth import population_digest, true_windows
from hearsay.terminal.console import Step, no_step
from producers.reporting import Reported
from producers.scenarios import Scenario, scenario
from producers.simulation import check_scenario
from producers.stopping import Stop, never
from protocols.errors import Stopped
from protocols.survey import Survey
from servers.settings import load


def populate(survey: Survey, name: str, devices: int | None, periods: int | None, seed: int) -> Scenario:
    """A scenario for a survey.

    Telemetry has no values of its own: it takes the survey's, and its priors. Commuters live on the survey's grid.
    """
    options: dict[str, Any] = {}
    if name == "telemetry":
        options["attributes"] = {a.name: a.prior or a.values for a in survey.attributes}
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
    return Survey.model_validate(survey.model_dump() | {"id": f"{survey.id[:124]}-sim", "clock": "source"})


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
    with collect(data, survey, load(), kafka) as collection:
        data.record_population(survey.id, population)
        _collect_periods(collection, scenario, step, stop)
        report = mobility_of(collection.results, survey.id)
    return with_truth(with_noted_losses(report, directory), true_windows(scenario, report))


def _collect_periods(collection: Collection, scenario: Scenario, step: Step, stop: Stop) -> None:
    survey, results = collection.scheme.survey.id, collection.results

    def show(reported: Reported) -> None:
        step(reported.done, reported.present, f"period {reported.period + 1} of {scenario.periods}")

    try:
        collection.simulation(scenario).run(range(next_period(results, survey), scenario.periods), show, stop)
    except Stopped as stopped:
        raise Stopped(stopped.message, "run the same command again to continue from there") from None
    wait_for_final(results, survey, scenario.periods - 1, step)
