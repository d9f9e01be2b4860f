"""What was published, as Arrow tables: of a simulation or a replay now, of a data directory, or of a Kafka cluster."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet

from analytics.mobility import tables
from hearsay.reports.files import chosen, mobility_of, open_results
from hearsay.running.replaying import replay_events
from hearsay.running.simulating import populate, rehearsal, simulate
from producers.events import ANY_ORDER, Options, Rule
from producers.files import ColumnMapping, Repeated, TableSource, in_memory
from protocols.privacy import CentralLoss
from protocols.scheme import Scheme
from protocols.survey import Survey, html_table
from views.results import crowds_of, histogram_table, readers_figure

TIMES = ("begin", "end")
WINDOW = (*TIMES, "kind")
SHARES = (*WINDOW, "attribute", "value", "share", "people", "people_low", "people_high", "truth")
FEW: Mapping[str, tuple[str, ...]] = {
    "histograms": ("begin", "attribute", "value", "n", "estimate", "low", "high", "consistent"),
    "visitors": (*WINDOW, "visitors", "new", "returning", "suppressed", "truth"),
    "gaps": (*WINDOW, "shortest", "longest", "visitors"),
    "values": SHARES,
    "groups": SHARES,
    "rankings": (*WINDOW, "attribute", "place", "value", "people", "probability"),
    "dwell": (*WINDOW, "attribute", "mean", "mean_low", "mean_high", "unit", *(f"quartiles_{n}" for n in (1, 2, 3))),
    "flows": (*WINDOW, "attribute", "origin", "destination", "people", "people_low", "people_high"),
    "trips": (*WINDOW, "attribute", "area", "began", "began_low", "began_high", "ended", "ended_low", "ended_high"),
    "crosses": (*WINDOW, "attribute", "row", "column", "share", "people", "people_low", "people_high"),
}
"""Of each table, what most people look at. `everything` has the rest."""
SHOWN = 5  # rows of each table in a notebook


class Tables(dict[str, pa.Table]):
    """The tables of one survey by name. `everything` has all their columns; times are those of the survey's clock.

    `readers` is what readers of all results so far learn about one device, where the survey has `central`.
    """

    def __init__(
        self, survey: Survey, everything: Mapping[str, pa.Table], crowds: Mapping[str, Sequence[int]] | None = None
    ) -> None:
        zone = survey.time_zone.name if survey.time_zone else "UTC"
        self.survey = survey
        self.everything = {name: _local(table, zone) for name, table in everything.items()}
        few = {name: table.select(FEW.get(name, table.column_names)) for name, table in self.everything.items()}
        super().__init__(few)
        self._crowds = crowds or {}

    @cached_property
    def readers(self) -> CentralLoss | None:
        """The figure, computed when it is first looked at; None for a survey without `central`."""
        return readers_figure(Scheme(self.survey), self._crowds)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} ({len(table):,})" for name, table in self.items())
        return f"Tables of survey {self.survey.id}, with rows: {sizes}"

    def _repr_html_(self) -> str:
        title = self.survey.title or self.survey.id
        return "".join(
            html_table(
                f"{title}: {name}, {min(SHOWN, len(table))} of {len(table):,} rows",
                table.column_names,
                (row.values() for row in table.slice(max(0, len(table) - SHOWN)).to_pylist()),
            )
            for name, table in self.items()
            if len(table)
        )


def _local(table: pa.Table, zone: str) -> pa.Table:
    for name in set(TIMES) & set(table.column_names):
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(pa.timestamp("us", tz=zone)))
    return table


def run(
    survey: Survey,
    scenario: str = "telemetry",
    *,
    devices: int | None = None,
    periods: int | None = None,
    seed: int = 0,
    data: str | Path | None = None,
) -> Tables:
    """Collect a survey from a simulated population in this process, and return what is published, beside the truth.

    `scenario` is telemetry (fits any survey), virtual-humans, commuters or demand. A survey with `clock: wall` is
    rehearsed: a copy with `clock: source` is collected, whose id has -sim at its end. State and results are kept in the
    directory `data`; run it again to resume. Without `data` nothing is kept. The tables are those of `read_results`,
    with the truth in their column `truth`.
    """
    with _kept(data) as directory:
        collected = rehearsal(survey)
        simulate(collected, populate(collected, scenario, devices, periods, seed), Path(directory))
        return read_results(directory)


def replay(
    events: TableSource | str,
    survey: Survey,
    *,
    person: str = "person",
    time: str = "time",
    columns: Mapping[str, str] | None = None,
    positions: Mapping[str, tuple[str, str]] | None = None,
    metres: bool = False,
    choose: Mapping[str, str] | None = None,
    zone: str | None = None,
    repeated: str = "refuse",
    most_faults: float = 0.05,
    data: str | Path | None = None,
) -> Tables:
    """Turn events into one report per person and period, collect them in this process, and return what is published.

    `events` are rows in any order: columns by name, a data frame, an Arrow table, or the name of a file. `columns` has
    the column of each attribute that is named otherwise, `positions` the two columns of a position on its grid
    (latitude and longitude, or with `metres` those of the grid). `choose` says which value of a period is reported:
    first, last (the default), most, longest or transition. `zone` is the time zone of times that have none, by default
    the survey's; `repeated` says which one is meant by local times that its clock shows twice: first, second, order (if
    rows are in the order of time) or refuse, which makes them faults. If more than `most_faults` of the rows have one
    fault, nothing is reported, and the error names it. A survey with `clock: wall` is replayed as a copy with `clock:
    source`, whose id has -sim at its end. State and results are kept in the directory `data`; without it nothing is
    kept. The tables are those of `read_results`.
    """
    collected = rehearsal(survey)
    named = zone or (survey.time_zone.name if survey.time_zone else None)
    options = Options(
        ColumnMapping(person, time, dict(columns or {}), dict(positions or {}), metres),
        ANY_ORDER,
        {attribute: Rule(rule) for attribute, rule in (choose or {}).items()},
        None if named is None else ZoneInfo(named),
        Repeated(repeated),
        datetime.now(UTC),
        most_faults=most_faults,
    )
    with _kept(data) as directory, TemporaryDirectory() as beside:
        path = Path(events) if isinstance(events, str | Path) else Path(beside) / "events.parquet"
        if not isinstance(events, str | Path):
            pyarrow.parquet.write_table(in_memory(events), path)
        replay_events([path], collected, options, Path(directory))
        return read_results(directory)


def read_results(data: str | Path | None = None, *, kafka: str | None = None, survey: str | None = None) -> Tables:
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
        sizes         of sets: how many values devices have
        amounts       mean, sum and quantiles of numbers
        flows         from origins to destinations
        trips         where transitions began and ended

    Each has the columns that most people look at, and times of the survey's time zone; `.everything` has all columns.
    `.readers` is what readers of all results learn about one device, if the survey has `central`.
    `table.to_pandas()` makes a data frame where pandas is installed.
    """
    with open_results(survey, None if data is None else Path(data), kafka) as (results, root):
        published = chosen(results, survey)
        report = mobility_of(results, published.id, data=root)
        histograms = results.histograms(published.id)
        crowds = crowds_of(Scheme(published), histograms)
        return Tables(published, {"histograms": histogram_table(histograms), **tables(report)}, crowds)


def _kept(data: str | Path | None) -> AbstractContextManager[str | Path]:
    """The directory of a collection; if none is named, one that is removed at the end."""
    return TemporaryDirectory() if data is None else nullcontext(data)
