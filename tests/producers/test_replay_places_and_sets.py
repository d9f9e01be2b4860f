"""Recorded positions become cells of a grid; sets are cells with semicolons, or a row for each value."""

import csv
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hearsay import read_results
from hearsay.running.replaying import replay_events
from producers.events import Options, Rule
from producers.events.interpreting import Interpreter
from producers.events.quality import Fault, Quality
from producers.files import ColumnMapping
from producers.files.answers import PARTS
from producers.files.reading import EventFiles
from producers.replay import Summary
from protocols.errors import ReplayError, Stopped
from protocols.respondent import UNKNOWN
from protocols.scheme import Scheme
from protocols.survey.grid import Grid
from protocols.survey_text import parse_survey
from tests.helpers.references import settled
from tests.helpers.sinks import KeepingSink
from tests.helpers.surveys import scheme_with
from tests.producers.events import MakeReplay, reported
from tests.producers.populations import KEYRING

LOCAL = {"at": [47.2, 6.0], "origin": [-1500, -1000], "cell": "500m", "columns": 7, "rows": 5}
NEAR = {"level": 1.1, "radius": "400m"}


def asked(grid: dict[str, Any]) -> Scheme:
    return scheme_with({"name": "place", "grid": grid, "geo": NEAR}, clock="source")


def read(path: Path, scheme: Scheme, columns: ColumnMapping) -> tuple[np.ndarray, int]:
    """The cells of all rows, and how many rows have no value."""
    files = EventFiles([path])
    quality = Quality(files)
    options = Options(columns, until=scheme.survey.start + timedelta(days=9))
    interpreter = Interpreter(scheme.survey, options, KEYRING)
    found = np.concatenate(
        [interpreter.read(batch, quality).values[:, 0] for batch in files.batches(interpreter.columns)]
    )
    return np.where(found == UNKNOWN, UNKNOWN, found // PARTS), quality.found[Fault.UNKNOWN_VALUE].count


def write(path: Path, rows: list[tuple[float, float]]) -> Path:
    lines = [f"p{i},2026-01-01T10:00:00Z,{a:.7f},{b:.7f}" for i, (a, b) in enumerate(rows)]
    path.write_text("\n".join(["person,time,one,two", *lines]) + "\n")
    return path


def middles(grid: Grid) -> tuple[Any, Any]:
    east, north = ((ends[1:] + ends[:-1]) / 2 for ends in grid.corners())
    x, y = np.meshgrid(east, north)
    return x.ravel(), y.ravel()


@pytest.mark.parametrize("grid", [LOCAL, {**LOCAL, "at": None, "crs": "EPSG:32631", "origin": [448_000, 5_411_000]}])
def test_the_middle_of_each_cell_is_in_it(tmp_path: Path, grid: dict[str, Any]) -> None:
    scheme = asked({key: value for key, value in grid.items() if value is not None})
    on = scheme.survey.attributes[0].grid
    assert on is not None and on.projection is not None
    x, y = middles(on)
    latitude, longitude = on.projection.degrees(x, y)
    positions = {"place": ("one", "two")}
    by_degrees = write(tmp_path / "degrees.csv", list(zip(latitude, longitude, strict=True)))
    by_metres = write(tmp_path / "metres.csv", list(zip(x, y, strict=True)))
    for path, metres in ((by_degrees, False), (by_metres, True)):
        cells, faults = read(path, scheme, ColumnMapping("person", "time", {}, positions, metres))
        assert (cells == np.arange(35)).all() and not faults


def test_positions_outside_are_in_the_nearest_cell_and_those_that_are_none_are_counted_as_faults(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "events.csv", [(47.2, 6.0), (50.0, 6.0), (91.0, 6.0)])
    path.write_text(path.read_text() + "q,2026-01-01T10:00:00Z,north,\n")
    cells, faults = read(path, asked(LOCAL), ColumnMapping("person", "time", {}, {"place": ("one", "two")}))
    assert faults == 2 and cells.tolist() == [2 * 7 + 3, 4 * 7 + 3, -1, -1]


def test_degrees_on_a_grid_that_does_not_know_them_are_refused(tmp_path: Path) -> None:
    scheme = asked({"crs": "EPSG:2154", "origin": [980_000, 6_680_000], "cell": "500m", "columns": 7, "rows": 5})
    path = write(tmp_path / "events.csv", [(47.2, 6.0)])
    with pytest.raises(ReplayError, match="metres of EPSG:2154"):
        read(path, scheme, ColumnMapping("person", "time", {}, {"place": ("one", "two")}))


# The memo is sent, and moved next to never: reports show the cells that people were settled in.
STEADY, BAY = (
    scheme_with(
        {"name": "place", "grid": grid, "geo_inf": {"level": 56, "radius": "500m"}}, clock="source", memo_cap=None
    )
    for grid in (LOCAL, {**LOCAL, "inside": ["x0-6y0", "x0-6y1", "x0-3y2", "x0-3y3", "x0-6y4"]})
)
METRES = Options(
    ColumnMapping("person", "time", {}, {"place": ("east", "north")}, metres=True),
    until=STEADY.survey.start + timedelta(days=99),
)


def walk(path: Path, positions: np.ndarray) -> Path:
    """One event per person and day, `[day, person, (east, north)]`; person 0 is on no list of the second day.

    Person 1 has no position on the fourth day.
    """
    lines = [
        f"p{person},{STEADY.survey.start + timedelta(days=day, hours=9):%Y-%m-%dT%H:%M:%SZ},"
        + (f"{x:.3f},{y:.3f}" if (day, person) != (3, 1) else ",")
        for day, people in enumerate(positions.tolist())
        for person, (x, y) in enumerate(people)
        if (day, person) != (1, 0)
    ]
    path.write_text("\n".join(["person,time,east,north", *lines]) + "\n")
    return path


def settled_one_by_one(positions: np.ndarray, scheme: Scheme = STEADY) -> dict[tuple[int, str], dict[str, int]]:
    """What devices of their own would report: `Grid.settled`, day after day."""
    grid = scheme.survey.attributes[0].grid
    assert grid is not None
    last: dict[int, int] = {}
    found = {}
    for day, people in enumerate(positions.tolist()):
        for person, (x, y) in enumerate(people):
            if (day, person) != (1, 0):
                if (day, person) != (3, 1):
                    last[person] = settled(grid, x, y, last.get(person))
                found[day, f"p{person}"] = {"place": last[person]}
    return found


def wanderers(days: int, people: int) -> np.ndarray:
    """Some lie still on a border or a corner and jitter by 30 m, the others walk some hundred metres a day.

    The walk leaves the grid, which is from -1,500 to 2,000 m east and from -1,000 to 1,500 m north.
    """
    random = np.random.default_rng(4)
    steps = random.normal(0, 300, (days, people, 2)).cumsum(axis=0)
    steps[:, : people // 2] = random.normal(0, 30, (days, people // 2, 2))
    return np.asarray(np.where(np.arange(people)[:, None] < people // 4, [0.0, 0.0], [0.0, 250.0]) + steps)


@pytest.mark.parametrize("scheme", [STEADY, BAY], ids=["whole", "inside"])
def test_a_person_keeps_the_last_cell_as_a_device_of_their_own_would(
    replay: MakeReplay, tmp_path: Path, scheme: Scheme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producers.events.spool.AT_ONCE", 100)
    positions, people = wanderers(12, 80), {f"p{person}" for person in range(80)}
    path, sink = walk(tmp_path / "walk.csv", positions), KeepingSink()
    replay(path, sink, METRES, scheme).run()
    found = reported(sink, scheme, people)
    assert found == settled_one_by_one(positions, scheme)
    still = [{found[day, f"p{person}"]["place"] for day in range(2, 12)} for person in range(20)]
    assert [len(cells) for cells in still] == [1] * 20, "who jitters on a corner has one memo"
    assert not list(tmp_path.glob("workspace/*/*.cells")), "the last cells are gone when all is replayed"


def test_a_replay_that_goes_on_knows_the_last_cells(replay: MakeReplay, tmp_path: Path) -> None:
    positions = wanderers(8, 40)
    path, sink = walk(tmp_path / "walk.csv", positions), KeepingSink()
    for enough in (5, 12, 19):
        with pytest.raises(Stopped):
            replay(path, sink, METRES, STEADY).run(stop=lambda enough=enough: len(sink.records) >= enough)
    (kept,) = tmp_path.glob("workspace/*/*.cells")
    assert kept.stat().st_mode & 0o077 == 0, "true places are private"
    replay(path, sink, METRES, STEADY).run()
    assert replay(path, sink, METRES, STEADY).run().periods == 8, "and again, when nothing is left to do"
    assert reported(sink, STEADY, {f"p{person}" for person in range(40)}) == settled_one_by_one(positions)


NAMES = tuple(f"integration {i}" for i in range(1, 31))
SURVEY = f"""
{{id: integrations, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, eps: 4,
 attributes: [{{name: integration, several: 8, values: [{", ".join(NAMES)}]}}]}}"""


def written(path: Path, sets: list[list[str]], one_by_one: bool) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "time", "integration"])
        for person, held in enumerate(sets):
            for cell in (held or [""]) if one_by_one else [";".join(held)]:
                writer.writerow([f"p{person}", "2026-01-01T12:00:00Z", cell])
    return path


def replayed(path: Path, **rules: Rule) -> Summary:
    options = Options(ColumnMapping("person", "time"), rules=rules)
    return replay_events([path], parse_survey(SURVEY), options, path.parent / "data")


@pytest.mark.parametrize("one_by_one", [False, True])
def test_shares_and_sizes_of_a_replayed_file_are_those_of_its_people(tmp_path: Path, one_by_one: bool) -> None:
    random, n = np.random.default_rng(3), 20_000
    have = random.random((n, 30)) < np.minimum(0.6, 1.2 / np.arange(1, 31))
    have[np.cumsum(have, axis=1) > 8] = False
    sets = [[NAMES[i] for i in random.permutation(np.flatnonzero(row))] for row in have]
    assert replayed(written(tmp_path / "events.csv", sets, one_by_one)).reports == n
    found = read_results(tmp_path / "data").everything
    truth = {"values": have.mean(axis=0), "sizes": np.bincount(have.sum(axis=1), minlength=9) / n}
    for name, shares in truth.items():
        share, error = (found[name][column].to_numpy() for column in ("share", "share_error"))
        assert (np.abs(share - shares) < 5 * error).all()
    mean, error = (found["sizes"][column][0].as_py() for column in ("mean_size", "mean_size_error"))
    assert abs(mean - have.sum(axis=1).mean()) < 5 * error
    assert found["sizes"]["size"].to_pylist() == [*map(str, range(8)), "8 or more"]


def test_a_value_that_is_not_listed_is_a_fault_of_its_row_and_the_others_count(tmp_path: Path) -> None:
    path = written(tmp_path / "events.csv", [[NAMES[0], "smoke"], []], one_by_one=False)
    summary = replayed(path)
    assert summary.reports == 2
    assert {fault.name: found.count for fault, found in summary.faults.items() if found.count} == {"UNKNOWN_VALUE": 1}


def test_one_of_several_values_is_not_chosen_of_sets(tmp_path: Path) -> None:
    path = written(tmp_path / "events.csv", [[NAMES[0]]], one_by_one=False)
    with pytest.raises(ReplayError, match="for sets"):
        replayed(path, integration=Rule.LAST)
