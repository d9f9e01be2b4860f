"""A simulated population, collected end to end: what `demo` and `run` do."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from hearsay import console
from hearsay.collecting import Collection, embedded
from hearsay.datadir import DataDirectory
from producers.reporting import Reported
from producers.scenarios import Scenario
from producers.stopping import ctrl_c_asks
from protocols import Survey, parse_survey
from protocols.settings import load


def example(name: str) -> Survey:
    """One of the annotated example surveys."""
    return parse_survey((files("protocols") / "examples" / f"{name}.yaml").read_text(), name)


def simulate(survey: Survey, scenario: Scenario, directory: Path) -> None:
    """Live through the scenario from where an earlier run stopped, then report."""
    with embedded(DataDirectory(directory), survey, load()) as collection:
        _collect(collection, scenario)
        for final in collection.app.store.histograms(survey.id):
            console.out.print(final.period, final.n)


def _collect(collection: Collection, scenario: Scenario) -> None:
    todo = range(collection.next_period(), scenario.periods)
    with console.progress("collecting") as step, ctrl_c_asks() as stop:

        def show(reported: Reported) -> None:
            step(reported.done, reported.present, f"period {reported.period + 1} of {scenario.periods}")

        collection.fleet(scenario).run(todo, show, stop)
