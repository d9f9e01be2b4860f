"""Files beside a survey: `values_from`, the values of an attribute; `areas`, which become groups of cells."""

import json
from pathlib import Path

import pytest

from hearsay.running.simulating import populate
from hearsay.survey_files import example, read_survey
from pages.shapes import grid_shapes
from producers.simulation import check_scenario
from protocols.errors import SurveyError
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey

SURVEY = "{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: [{name: a, %s}]}"
MEMOS = "eps_inf: 2, eps_1: 1"
TEXT = """
{id: s, start: 2026-01-01T00:00:00Z, period: 1d, attributes: [{name: place, areas: districts.geojson,
 grid: {at: [47.2, 6.0], cell: 500m, columns: 6, rows: 4}, geo: {level: 1.1, radius: 400m}}]}
"""


def written(directory: Path, more: str) -> Path:
    path = directory / "survey.yaml"
    path.write_text(SURVEY % more)
    return path


def test_very_many_values_are_read_from_a_file_and_asked_with_fresh_hashes(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("".join(f"item {place}\n" for place in range(70_000)))
    found = read_survey(written(tmp_path, "values_from: names.txt"))
    assert found.attributes[0].values[-1] == "item 69999"
    assert Scheme(found).questions[0].label == "olh"
    few = ", ".join(f"item {place}" for place in range(3))
    (tmp_path / "names.txt").write_text("item 0\nitem 1\nitem 2")
    same = read_survey(written(tmp_path, "values_from: names.txt")), parse_survey(SURVEY % f"values: [{few}]")
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("values_from: ../names.txt", "not the name of a file"),
        ("values_from: [a]", "not the name of a file"),
        ("values_from: names.txt, values: [a, b]", "other values beside it"),
        ("values_from: others.txt", r"others.txt cannot be read: No such file"),
        ("values_from: names.txt", "lists 'x' twice"),
    ],
)
def test_a_wrong_file_of_values_is_refused_in_words(tmp_path: Path, more: str, words: str) -> None:
    (tmp_path / "names.txt").write_text("x\nx\n")
    with pytest.raises(SurveyError, match=words):
        read_survey(written(tmp_path, more))


@pytest.mark.parametrize(
    ("more", "budgets", "words"),
    [
        ("values_from: names.txt", "eps: 1", "read from beside a survey's file"),
        ("range: {last: 69999}", MEMOS, r"has 70,000 values; auto takes at most 65,536 .*olh up to 1,000,000"),
        ("range: {last: 299}, mechanism: loloha", MEMOS, r"at most 255 values, not 300.*l-osue up to 65,536"),
        ("range: {last: 299}, mechanism: olh", MEMOS, "'olh' does not fit this survey's solution and budgets"),
        ("range: {last: 1000000}", "eps: 1", "more than 1,000,000 values"),
        ("range: {last: 999999}, mechanism: olh, parameter: 61", "eps: 1", "olh cannot hash 1000000 values to g = 61"),
    ],
)
def test_too_many_values_are_refused_with_what_to_take(more: str, budgets: str, words: str) -> None:
    with pytest.raises(SurveyError, match=words):
        parse_survey((SURVEY % more).replace("eps: 1", budgets))


def districts(*squares: tuple[str, float, float, float, float]) -> str:
    """Rectangles of longitudes and latitudes."""
    features = []
    for name, west, south, east, north in squares:
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        shape = {"type": "Polygon", "coordinates": [ring]}
        features.append({"properties": {"name": name}, "geometry": shape})
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


def test_the_map_has_a_shape_for_each_cell_where_it_is_and_commuters_live_on_the_grid() -> None:
    survey = example("places")
    shapes = grid_shapes(survey)
    assert shapes is not None and shapes["attribute"] == "place"
    assert [shape["properties"]["name"] for shape in shapes["features"]] == list(survey.attributes[0].values)
    (corner, *_) = shapes["features"][0]["geometry"]["coordinates"][0]
    assert corner == pytest.approx([6.02 - 5000 / 75_800, 47.24 - 4000 / 111_200], abs=1e-3)
    check_scenario(survey, populate(survey, "commuters", 50, 2, 0))
