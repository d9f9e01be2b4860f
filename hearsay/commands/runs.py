"""`hearsay demo` and `hearsay run`: a simulated population, collected end to end in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hearsay.terminal import console
from producers.scenarios import SCENARIOS

DataDir = Annotated[Path, typer.Option("--data", help="Where state and results are kept; run again to resume.")]


def demo(
    data: DataDir = Path("hearsay-data/demo"),
    devices: Annotated[int | None, typer.Option(help="Fewer people than the festival's 88,935.", min=10)] = None,
    kafka: console.Kafka = None,
) -> None:
    """Collect a festival week end to end: real memos, real frames, real counting, and a mobility report.

    88,935 virtual people visit an area on seven days. Each has a memoised noisy answer in a Redis that is started for
    the run; every day each visitor sends one report. Nothing needs to be installed or configured.

    Example: hearsay demo
    """
    from hearsay.running.simulating import simulate
    from hearsay.survey_files import example
    from producers.scenarios import scenario

    simulate(example("mobility-week"), scenario("virtual-humans", devices=devices), data, kafka)


def run(
    survey_file: Annotated[Path, typer.Argument(metavar="SURVEY", help="A survey file with clock: source.")],
    scenario_name: Annotated[
        str, typer.Option("--scenario", help=f"{', '.join(SCENARIOS)}; telemetry fits any survey.")
    ],
    devices: Annotated[int | None, typer.Option(help="How many devices there are.", min=1)] = None,
    periods: Annotated[int | None, typer.Option(help="How many periods they live through.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another truth.")] = 0,
    data: DataDir = Path("hearsay-data/run"),
    kafka: console.Kafka = None,
) -> None:
    """Collect a survey from a simulated population, end to end, and report on it.

    Run it again to resume: what was counted is not counted twice.

    Example: hearsay run survey.yaml --scenario telemetry --devices 20000 --periods 14
    """
    from hearsay.running.simulating import populate, simulate
    from hearsay.survey_files import read_survey

    survey = read_survey(survey_file)
    simulate(survey, populate(survey, scenario_name, devices, periods, seed), data, kafka)
