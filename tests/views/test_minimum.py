"""Under a minimum m, nobody who knows the rule and all that is published knows of any set of cells that it has 1 to
m - 1 reports. A cell is a period, a kind of reports (a question, or presence alone) and a gap.

Which sets suffice: all sets of cells are held at once by other numbers that are possible and in which every cell has 0
or at least m reports (`Knowledge.coarse`), because then every set has. An integer program looks for such numbers, with
what is published and the rule as constraints. It cannot be too generous: a collection with these numbers is counted,
merged and published by the same code, and must publish the same bytes, when and as often as the first one. That holds
every document, whatever numbers are in it. The program cannot be too strict: the true numbers must be possible.

What comes between two publications is no cell. Its sets (each kind, or all, between any two publications) are minimised
and maximised one by one. So are the sets of the controls, which publish more: there a leak must be found.

Late and refused reports are in no cell. Each of their numbers is rounded, and nothing is claimed about sets of them.
Metrics, logs, dead letters and partials are for operators alone (docs/operations.md).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from typer.testing import CliRunner

from analytics.windows import UnitSum
from hearsay.cli import app
from hearsay.data_directory import COLLECTOR
from pages.about import survey_event
from pages.dashboard.making import Making
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME
from stream_app.local import DirectoryFollower
from tests.helpers.crowd import scheme_of
from tests.views.knowledge import Cell, Cells, Fact, Knowledge, Numbers
from tests.views.small_surveys import (
    KEY,
    Collected,
    Collection,
    Report,
    random_collection,
    tell_open,
    tell_released,
    told,
    wire,
    with_numbers,
)
from views.local import collector

M = 5


def other_numbers(collected: Collected, seed: int) -> Numbers:
    """Possible numbers of all cells: 0, or at least the minimum. Fails where somebody may know of too few reports."""
    coarse: dict[Cell, int] = {}
    periods = collected.collection.periods
    for some in [periods] if collected.collection.scheme.survey.units else [[period] for period in periods]:
        known = told(collected, some)
        true = {cell: n for cell, n in collected.collection.numbers.items() if cell.period in some}
        assert known.allows(true), f"seed {seed}, periods {some}: the rule is another one"
        found = known.coarse()
        assert found is not None, f"seed {seed}, periods {some}: {known.leaks(runs_of_gaps(known), [true])}"
        assert known.leaks(between_publications(known), [true, found]) == [], f"seed {seed}, periods {some}"
        coarse |= {cell: n for cell, n in found.items() if n}
    return coarse


def _check(seed: int, units: bool = False) -> None:
    collected = Collected.of(random_collection(seed, units))
    other = Collected.of(with_numbers(collected, other_numbers(collected, seed)))
    assert other.publications == collected.publications, f"seed {seed}: that numbers are others can be seen"


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_no_set_of_cells_is_known_to_have_few_reports(seed: int, units: bool) -> None:
    _check(seed, units)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("first", range(8, 200, 24))
@pytest.mark.parametrize("units", [False, True])
def test_nor_in_many_more_surveys(first: int, units: bool) -> None:
    for seed in range(first, first + 24):
        _check(seed, units)


@pytest.mark.parametrize("seed", [13, 37])
def test_tables_pages_and_the_dashboard_tell_no_more(tmp_path: Path, seed: int) -> None:
    """A data directory with the numbers that are coarse: all that a reader gets of it is the same."""
    collected = Collected.of(random_collection(seed))
    assert any(collected.released.values())
    other = with_numbers(collected, other_numbers(collected, seed))
    assert other.numbers != collected.collection.numbers
    assert shown(other, tmp_path / "other") == shown(collected.collection, tmp_path / "true")


def test_readers_do_not_see_few_refused_and_late_reports_neither_in_numbers_nor_in_places(tmp_path: Path) -> None:
    collection = random_collection(13)
    minimum, horizon = collection.scheme.survey.minimum, collection.scheme.survey.horizon
    counted = [report for report in collection.reports if report.cell in collection.numbers]
    refused = [Report(one.cell._replace(gap=horizon + 1), one.answers) for one in counted[: minimum - 1]]
    late = [Report(Cell(0, "a", 1, collection.stages - 1), one.answers) for one in counted[: minimum - 1]]
    more, fewer = (replace(collection, reports=reports) for reports in ([*counted, *refused, *late], counted))
    assert shown(more, tmp_path / "more") == shown(fewer, tmp_path / "fewer")


def shown(collection: Collection, directory: Path) -> list[object]:
    """What readers see: events of the dashboard while it is collected; then the report as text, tables and page."""
    survey, found = collection.scheme.survey, list[object]()
    place = directory / COLLECTOR
    making = Making(frozenset(), survey_event, lambda report: report)
    with collector(place, [survey], KEY, KEY) as to, closing(DirectoryFollower(place)) as follower:

        def publish() -> None:
            to.flush()
            found.extend(making.apply(follower.poll(0)))
            found.extend(making.statuses(None, trouble=False))

        for frames, clock in wire(collection):
            for frame in frames:
                to.send(0, FRAME, frame)
            publish()
            if clock is not None:
                to.send(0, CLOCK, clock)
                publish()
    written = directory / "written"
    for options in ([], ["--json"], ["--csv", str(written), "--html", str(written / "page.html")]):
        reported = CliRunner().invoke(app, ["report", "--data", str(directory), *options], catch_exceptions=False)
        found.append(reported.stdout.replace(str(directory), ""))
    return [*found, *((path.name, path.read_bytes()) for path in sorted(written.iterdir()))]


def runs_of_gaps(known: Knowledge) -> Iterator[Cells]:
    """Of every period: each kind, all kinds, all but one; of them, every run of gaps."""
    kinds, gaps = frozenset(cell.kind for cell in known.cells), sorted({cell.gap for cell in known.cells})
    for period in sorted({cell.period for cell in known.cells}):
        for chosen in {kinds, *(frozenset({kind}) for kind in kinds), *(kinds - {kind} for kind in kinds)}:
            for first, last in combinations([*gaps, gaps[-1] + 1], 2):
                yield known.select(periods={period}, kinds=chosen, gaps=range(first, last))


def through_all_periods(known: Knowledge) -> Iterator[Cells]:
    """Each gap, or flag, of all periods."""
    return (known.select(gaps={gap}) for gap in {cell.gap for cell in known.cells})


def between_publications(known: Knowledge) -> Iterator[Cells]:
    """Each kind and all kinds, between any two publications."""
    kinds, stages = {cell.kind for cell in known.cells}, sorted({cell.stage for cell in known.cells})
    for chosen in [kinds, *({kind} for kind in kinds)]:
        for first, last in combinations([*stages, stages[-1] + 1], 2):
            yield known.select(kinds=chosen, stages=range(first, last))


Table = Mapping[str, Sequence[Sequence[int]]]  # by kind and period: reports with gap 1, 2 ..
Control = tuple[Knowledge, Numbers]


def _of(table: Table) -> tuple[Knowledge, Numbers, Scheme]:
    """The cells of a table, nothing known about them; its numbers; and a survey with these kinds and gaps."""
    numbers = {
        Cell(period, kind, gap, 0): n
        for kind, periods in table.items()
        for period, gaps in enumerate(periods)
        for gap, n in enumerate(gaps, 1)
    }
    attributes = ", ".join(f"{{name: {kind}, values: [x, y]}}" for kind in table)
    horizon = max(cell.gap for cell in numbers)
    return Knowledge(numbers, M), numbers, scheme_of(attributes, f"eps: 1, horizon: {horizon}, minimum: {M}")


def statistics_by_gap() -> Control:
    """As it was: a period of enough reports publishes all of them by gap."""
    known, numbers, _ = _of({"a": [[36, 1]]})
    known.tell(*(Fact([cell], n, n) for cell, n in numbers.items()))
    return known, numbers


def provisional_answers() -> Control:
    """A question has answers as soon as it has enough reports, and is left out of the final with another one."""
    known, numbers, scheme = _of({"a": [[6]], "b": [[20]], "c": [[2]]})
    known.tell(Fact(known.select(kinds={"a"}), 6))
    tell_released(known, scheme, {"b": {1: 20}})
    return known, numbers


def two_provisional_counts() -> Control:
    """The number of reports so far, twice."""
    numbers = {Cell(0, "a", 1, 0): 10, Cell(0, "a", 1, 1): 1}
    known = Knowledge(numbers, M)
    known.tell(Fact(known.select(stages={0}), 10, 10), Fact(known.cells, 11, 11))
    return known, numbers


def a_period_that_is_named() -> Control:
    """A status has a period with 0 reports, or a survey's first final releases nothing."""
    known, numbers, scheme = _of({"a": [[2]]})
    tell_open(known, scheme, stage=0, reports=0)
    known.tell(Fact(known.cells, 1))
    return known, numbers


AGAIN, FIRST, EVER = 1, 2, 3  # in place of gaps: not the first report in the week; the first one; the first ever


def week_of(*periods: tuple[int, int, int]) -> tuple[Knowledge, Numbers, UnitSum]:
    """The cells of a week, its numbers, and its sum. How many report in each period is known."""
    known, numbers, _ = _of({"a": periods})
    for period, flags in enumerate(periods):
        known.tell(Fact(known.select(periods={period}), sum(flags), sum(flags)))
    known.tell(Fact(known.select(periods={0}, gaps={AGAIN}), 0, 0))
    visits = [sum(flags) for flags in periods]
    n, new = (sum(sum(flags[least:]) for flags in periods) for least in (1, 2))
    return known, numbers, UnitSum(0, {"a": n}, {"a": new}, {}, {"a": sum(visits)}, {"a": max(visits)})


def new_visitors_without_a_test_of_their_own() -> Control:
    known, numbers, week = week_of((0, 14, 1), (6, 8, 1))
    assert (found := week.protected(("a",), M)) is not None and not found.new
    known.tell(Fact(known.select(gaps={FIRST, EVER}), 24, 24), Fact(known.select(gaps={EVER}), 2, 2))
    return known, numbers


def weeks_beside_months() -> Control:
    """Two weeks of two days that are a month. One report is the first of its week, and not of the month: `EVER` is."""
    table = [(0, 0, 15), (6, 0, 10), (0, 1, 15), (6, 0, 10)]
    known, numbers, _ = _of({"a": table})
    for period, flags in enumerate(table):
        known.tell(Fact(known.select(periods={period}), sum(flags), sum(flags)))
    weeks = [known.select(periods=days, gaps={FIRST, EVER}) for days in ({0, 1}, {2, 3})]
    known.tell(
        Fact(known.select(periods={0}, gaps={AGAIN, FIRST}), 0, 0), Fact(known.select(periods={2}, gaps={AGAIN}), 0, 0)
    )
    known.tell(Fact(known.select(periods={1}, gaps={FIRST}), 0, 0), Fact(weeks[0], 25, 25), Fact(weeks[1], 26, 26))
    known.tell(Fact(known.select(gaps={EVER}), 50, 50))
    return known, numbers


CONTROLS: Sequence[Callable[[], Control]] = (
    statistics_by_gap,
    provisional_answers,
    two_provisional_counts,
    a_period_that_is_named,
    new_visitors_without_a_test_of_their_own,
    weeks_beside_months,
)


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: str(control.__name__))
def test_what_publishes_more_is_found_to_leak(control: Callable[[], Control]) -> None:
    known, numbers = control()
    assert known.allows(numbers)
    looked_at = (runs_of_gaps, between_publications, through_all_periods)
    leaks = [fact for sets in looked_at for fact in known.leaks(sets(known), [numbers])]
    assert leaks
    assert known.coarse() is None or control is two_provisional_counts
