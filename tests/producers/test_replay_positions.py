"""Recorded positions become cells of a survey's grid: by latitude and longitude, or in metres."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from producers.replay import ColumnMapping, Options
from producers.replay.files.reading import EventFiles
from producers.replay.interpreting import Interpreter
from producers.replay.quality import Fault, Quality
from protocols.errors import ReplayError
from protocols.scheme import Scheme
from protocols.survey.grid import Grid
from tests.helpers.surveys import scheme_with

LOCAL = {"at": [47.2, 6.0], "origin": [-1500, -1000], "cell": "500m", "columns": 7, "rows": 5}
NEAR = {"level": 1.1, "radius": "400m"}


def asked(grid: dict[str, Any]) -> Scheme:
    return scheme_with({"name": "place", "grid": grid, "geo": NEAR}, clock="source")


def read(path: Path, scheme: Scheme, columns: ColumnMapping) -> tuple[np.ndarray, int]:
    """The cells of all rows, and how many rows have no value."""
    files = EventFiles([path])
    quality = Quality(files)
    options = Options(columns, until=scheme.survey.start + timedelta(days=9))
    interpreter = Interpreter(scheme.survey, options, quality)
    cells = [interpreter.read(batch).values[:, 0] for batch in files.batches(interpreter.columns)]
    return np.concatenate(cells), quality.found[Fault.UNKNOWN_VALUE].count


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


def test_positions_outside_the_grid_and_those_that_are_none_are_counted_as_faults(tmp_path: Path) -> None:
    path = write(tmp_path / "events.csv", [(47.2, 6.0), (50.0, 6.0), (91.0, 6.0)])
    path.write_text(path.read_text() + "q,2026-01-01T10:00:00Z,north,\n")
    cells, faults = read(path, asked(LOCAL), ColumnMapping("person", "time", {}, {"place": ("one", "two")}))
    assert faults == 3 and cells.tolist() == [2 * 7 + 3, -1, -1, -1]


def test_degrees_on_a_grid_that_does_not_know_them_are_refused(tmp_path: Path) -> None:
    scheme = asked({"crs": "EPSG:2154", "origin": [980_000, 6_680_000], "cell": "500m", "columns": 7, "rows": 5})
    path = write(tmp_path / "events.csv", [(47.2, 6.0)])
    with pytest.raises(ReplayError, match="metres of EPSG:2154"):
        read(path, scheme, ColumnMapping("person", "time", {}, {"place": ("one", "two")}))
