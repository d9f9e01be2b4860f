"""Surveys of places from files: areas as groups, the cells of the map, commuters on the grid, a device's position."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import hearsay
from hearsay.running.simulating import populate
from hearsay.survey_files import example, read_survey
from pages.shapes import grid_shapes
from producers.simulation import check_scenario
from protocols.errors import DeviceError, SurveyError
from protocols.scheme import Scheme
from tests.helpers.surveys import scheme_with

ANYTHING = hearsay.Limits(report=1e6, value=1e6, year=1e7, ratio=1)
TEXT = """
{id: s, start: 2026-01-01T00:00:00Z, period: 1d, attributes: [{name: place, areas: districts.geojson,
 grid: {at: [47.2, 6.0], cell: 500m, columns: 6, rows: 4}, geo: {level: 1.1, radius: 400m}}]}
"""


def districts(*squares: tuple[str, float, float, float, float]) -> str:
    """Rectangles of longitudes and latitudes."""
    features = [
        {
            "properties": {"name": name},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[west, south], [east, south], [east, north], [west, north], [west, south]]],
            },
        }
        for name, west, south, east, north in squares
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def test_areas_of_a_file_become_groups_and_change_no_fingerprint(tmp_path: Path) -> None:
    survey_file, areas = tmp_path / "survey.yaml", tmp_path / "districts.geojson"
    survey_file.write_text(TEXT)
    with pytest.raises(SurveyError, match="beside the survey"):
        read_survey(survey_file)
    areas.write_text(districts(("west", 5.9, 47.1, 6.0132, 47.3), ("far away", 7.0, 47.1, 7.1, 47.3)))
    survey = read_survey(survey_file)
    groups = survey.attributes[0].groups
    assert groups == {"west": tuple(f"x{x}y{y}" for y in range(4) for x in range(2))}
    other = areas.read_text().replace("west", "left")
    areas.write_text(other)
    assert Scheme(read_survey(survey_file)).fingerprint == Scheme(survey).fingerprint
    areas.write_text("{}")
    with pytest.raises(SurveyError, match="cannot be read"):
        read_survey(survey_file)


def test_the_map_has_a_shape_for_each_cell_where_it_is() -> None:
    survey = example("places")
    shapes = grid_shapes(survey)
    assert shapes is not None and shapes["attribute"] == "place"
    assert [shape["properties"]["name"] for shape in shapes["features"]] == list(survey.attributes[0].values)
    (corner, *_) = shapes["features"][0]["geometry"]["coordinates"][0]
    assert corner == pytest.approx([6.02 - 5000 / 75_800, 47.24 - 4000 / 111_200], abs=1e-3)


def test_commuters_live_on_the_grid_of_the_survey() -> None:
    survey = example("places")
    check_scenario(survey, populate(survey, "commuters", 50, 2, 0))


def test_a_device_near_a_border_keeps_its_cell_also_if_it_does_not_know_where_it_is(tmp_path: Path) -> None:
    """The memo is sent, so the same report again means the same cell."""
    grid = {"at": [47.2, 6.0], "cell": "500m", "columns": 6, "rows": 4}
    scheme = scheme_with({"name": "place", "grid": grid, "geo_inf": {"level": 1.1, "radius": "400m"}}, memo_cap=3)
    moment = [datetime(2026, 1, 1, 12, tzinfo=UTC)]
    near: list[Any] = [{"x": x, "y": 700.0} for x in (990.0, 1010.0, 1120.0)]
    wrong = [{"x": 1.0}, {"latitude": "here", "longitude": 6}, {"x": float("nan"), "y": 1.0}, "x9y9", None]
    with hearsay.Device(tmp_path / "device.db", limits=ANYTHING, now=lambda: moment[0].timestamp()) as device:
        survey = device.join(scheme.terms, trust_first_use=True)
        sent = []
        for day, position in enumerate([*near, *wrong], 1):
            moment[0] = datetime(2026, 1, day, 12, tzinfo=UTC)
            report = device.settle(survey, {"place": position})
            sent.append(json.loads(report.report)["answers"]["place"])
            assert report.unlisted == (() if position in near else ("place",))
        assert len(set(sent)) == 1


def test_limits_count_what_two_positions_500_metres_apart_reveal(tmp_path: Path) -> None:
    grid = {"at": [47.2, 6.0], "cell": "500m", "columns": 6, "rows": 4}
    weak = scheme_with({"name": "place", "grid": grid, "geo": {"level": 1.7, "radius": "400m"}})
    with hearsay.Device(tmp_path / "device.db") as device, pytest.raises(DeviceError, match=r"may reveal 1\.7,"):
        device.join(weak.terms, trust_first_use=True)
