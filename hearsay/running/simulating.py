"""A simulated population, collected end to end: what `demo` and `run` do."""

from __future__ import annotations

from pathlib import Path

from analytics.mobility import MobilityReport, with_lost_presence, with_truth
from hearsay.reports.files import latest, write_files
from hearsay.reports.sources import mobility_of, next_period, wait_for_final
from hearsay.reports.tables import answers_table, visitors_table
from hearsay.running.collecting import Collection, collect
from hearsay.running.data_directory import DataDirectory
from hearsay.running.scenario_truth import population_digest, true_windows
from hearsay.terminal import console
from producers.fleet import check_scenario
from producers.reporting import Reported
from producers.scenarios import Scenario, scenario
from producers.stopping import ctrl_c_asks
from protocols.survey import Survey
from servers.settings import load


def populate(survey: Survey, name: str, devices: int | None, periods: int | None, seed: int) -> Scenario:
    """A scenario for a survey. Telemetry has no values of its own: it takes the survey's, and its priors."""
    options = {"attributes": {a.name: a.prior or a.values for a in survey.attributes}} if name == "telemetry" else {}
    return scenario(name, devices=devices, periods=periods, seed=seed, **options)


def simulate(survey: Survey, scenario: Scenario, directory: Path, kafka: str | None = None) -> None:
    """Live through the scenario from where an earlier run stopped, then report."""
    check_scenario(survey, scenario)
    data = DataDirectory(directory)
    data.belongs_to(survey.id, population_digest(scenario))
    with collect(data, survey, load(), kafka) as collection:
        _live_through(collection, scenario)
        report = mobility_of(collection.results, survey.id)
    report = with_lost_presence(report, data.presence_losses)
    _show(with_truth(report, true_windows(scenario, report)), data.reports / f"{survey.id}.html")


def _live_through(collection: Collection, scenario: Scenario) -> None:
    survey, results = collection.scheme.survey.id, collection.results
    todo = range(next_period(results, survey), scenario.periods)
    with console.progress("collecting") as step, ctrl_c_asks() as stop:

        def show(reported: Reported) -> None:
            step(reported.done, reported.present, f"period {reported.period + 1} of {scenario.periods}")

        collection.fleet(scenario).run(todo, show, stop)
        wait_for_final(results, survey, scenario.periods - 1, step)


def _show(report: MobilityReport, page: Path) -> None:
    console.out.print(visitors_table(report))
    console.out.print(answers_table(latest(report)))
    write_files(report, page, None, None)
    console.out.print(f"\nThe whole report, with charts: {page}", soft_wrap=True, markup=False)
