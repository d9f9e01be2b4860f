"""`hearsay demo` and `hearsay run`: a simulated population, collected end to end."""

from __future__ import annotations

import gc
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hearsay.terminal import console

if TYPE_CHECKING:
    from producers.scenarios import Scenario
    from protocols.survey import Survey

NEW_OBJECTS = 50_000
"""So many of them are searched for garbage at once. Importing makes nearly all of them, and they stay."""


def demo(
    data: console.Data = None,
    devices: Annotated[int | None, typer.Option(min=10)] = None,
    kafka: console.Kafka = None,
) -> None:
    """Simulate a festival week, collect it end to end, and show the mobility report.

    88,935 simulated people visit an area on seven days. Each device has a memoised noisy answer in a Redis that is
    started for the run, and sends one report on every day of its visit. Nothing needs to be installed or configured.

    Example: hearsay demo
    """
    gc.set_threshold(NEW_OBJECTS)
    from hearsay.survey_files import example
    from producers.scenarios import scenario

    # Its people are simulated, so nothing is held back, however few they are.
    everything = example("mobility-week").model_copy(update={"minimum": 0})
    _simulate(everything, scenario("virtual-humans", devices=devices), data, kafka)
    console.print_next("survey", "new", "survey.yaml")


def run(
    survey_file: Annotated[Path, typer.Argument(metavar="SURVEY", show_default=False)],
    scenario_name: Annotated[str, typer.Option("--scenario")] = "telemetry",
    devices: Annotated[int | None, typer.Option(min=1)] = None,
    periods: Annotated[int | None, typer.Option(min=1)] = None,
    seed: int = 0,
    data: console.Data = None,
    kafka: console.Kafka = None,
) -> None:
    """Simulate a population, collect a survey from it end to end, and show the results.

    A simulation has its own time. So a survey with clock: wall is rehearsed: a copy with clock: source is collected,
    under the same id with -sim at its end, and the survey itself stays unused.

    Run it again to resume. Every report is counted once.

    Example: hearsay run survey.yaml --devices 20000 --periods 14
    """
    gc.set_threshold(NEW_OBJECTS)
    from hearsay.reports.page import read_areas
    from hearsay.running.simulating import populate, rehearsal
    from hearsay.survey_files import counted_or_rehearsed_at, read_survey

    declared = read_survey(survey_file, counted_or_rehearsed_at(data, kafka))
    survey = rehearsal(declared)
    if survey is not declared:
        console.err.print(f"{declared.id} has clock: wall; simulated as {survey.id}, with clock: source.", markup=False)
    population = populate(survey, scenario_name, devices, periods, seed)
    _simulate(survey, population, data, kafka, read_areas(survey_file, survey))
    console.print_next("report", survey.id, *console.where(data, kafka))
    if kafka is None:
        real = f"hearsay stack up, then hearsay survey publish {shlex.quote(str(survey_file))}"
        console.out.print(f"To collect from real devices: {real}", soft_wrap=True, markup=False)


def _simulate(
    survey: Survey, scenario: Scenario, named: Path | None, kafka: str | None, areas: str | None = None
) -> None:
    from hearsay.data_directory import DataDirectory, directory_of
    from hearsay.reports.files import figure_of, latest, open_results
    from hearsay.reports.page import keep_areas, write_page
    from hearsay.reports.tables import MOST_ATTRIBUTES, report_tables
    from hearsay.running.simulating import simulate
    from producers.stopping import ctrl_c_asks
    from servers.logs import configure_logs

    configure_logs("WARNING")
    data = directory_of(survey.id, named)
    with console.progress("collecting") as step, ctrl_c_asks() as stop:
        report = simulate(survey, scenario, data, kafka, step, stop)
    for table in report_tables(report, latest(report), MOST_ATTRIBUTES):
        console.out.print(table)
    with open_results(survey.id, data, kafka) as (results, _):
        live, forecasts = results.live(survey.id), results.forecasts(survey.id)
        readers = figure_of(results, survey)
    keep_areas(areas, survey, data)
    page = DataDirectory(data).reports / f"{survey.id}.html"
    write_page(page, survey, report, live, forecasts, data=data, readers=readers)
    console.out.print(f"\nThe whole report, with charts: {page}", soft_wrap=True, markup=False)
