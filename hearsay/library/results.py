"""What was published, as Arrow tables: of a simulation run now, of a data directory, or of a Kafka cluster."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from analytics.mobility import MobilityReport, tables
from hearsay.reports.files import chosen, mobility_of, open_results, with_noted_losses
from hearsay.running.simulating import populate, rehearsal, simulate
from protocols.survey import Survey
from views.reading import Results
from views.results import histogram_table


def run(
    survey: Survey,
    scenario: str = "telemetry",
    *,
    devices: int | None = None,
    periods: int | None = None,
    seed: int = 0,
    data: str | Path | None = None,
) -> dict[str, pa.Table]:
    """Collect a survey from a simulated population in this process, and return what is published, beside the truth.

    `scenario` is telemetry (fits any survey), virtual-humans, commuters or demand. A survey with `clock: wall` is
    rehearsed: a copy with `clock: source` is collected, whose id has -sim at its end. State and results are kept in the
    directory `data`; run it again to resume. Without `data` nothing is kept. The tables are those of `read_results`,
    with the truth in their column `truth`.
    """
    with ExitStack() as held:
        directory = Path(held.enter_context(TemporaryDirectory()) if data is None else data)
        collected = rehearsal(survey)
        report = simulate(collected, populate(collected, scenario, devices, periods, seed), directory)
        results, _ = held.enter_context(open_results(None, directory, None))
        return _tables(results, report)


def read_results(
    data: str | Path | None = None, *, kafka: str | None = None, survey: str | None = None
) -> dict[str, pa.Table]:
    """What was published of a survey, in a data directory or on the Kafka cluster at `kafka` (HOST:PORT).

    With both, the results are those of the cluster, and windows are marked where the data directory has noted a loss
    of presence. Without both, the directory is hearsay-data/SURVEY, as for commands. `survey` is the survey's id, which
    may be left out if there is only one. The tables, by name:

        histograms    shares of each value, by period: what `estimate` returns
        visitors      of each period and window: unique devices, new and returning ones, changes
        gaps          how long returning visitors had been away
        values        people with each value, by window
        groups        the same for groups of values
        rankings      the busiest areas
        dwell         mean and quartiles of durations
        flows         from origins to destinations

    `table.to_pandas()` makes a data frame where pandas is installed.
    """
    with open_results(survey, None if data is None else Path(data), kafka) as (results, root):
        report = mobility_of(results, chosen(results, survey).id)
        if root is not None:
            report = with_noted_losses(report, root)
        return _tables(results, report)


def _tables(results: Results, report: MobilityReport) -> dict[str, pa.Table]:
    return {"histograms": histogram_table(results.histograms(report.survey)), **tables(report)}
