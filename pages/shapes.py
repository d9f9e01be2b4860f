"""The shapes of a survey's areas, from a GeoJSON file: checked, and cut to what a map needs."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import permutations
from math import isfinite
from typing import Any

import numpy as np

from protocols.errors import SurveyError
from protocols.survey import Survey, origin_and_destination

HINT = (
    "write a FeatureCollection of Polygons or MultiPolygons, with the area as the value names it in the property name"
)
DIGITS = 5  # of longitudes and latitudes: about a metre
MOST_POINTS = 200_000
MOST_CELLS = 10_000  # of a grid that a map shows
METRES_OF_A_DEGREE = 111_320.0
_DEPTHS = {"Polygon": 1, "MultiPolygon": 2}  # of lists around each ring of points


def parse_shapes(text: str, survey: Survey, source: str) -> dict[str, Any]:
    """The shapes of the values of the survey's area attribute, as a page takes them. Raises SurveyError.

    A feature's name is its property `name`, or else its id. Features that are no value of it are left out, but for
    those of `places`, which only flows lead from or to: districts, for instance, where areas are smaller.
    """
    try:
        features = json.loads(text)["features"]
        named = [_read(feature) for feature in features]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise SurveyError(f"{source} cannot be read as areas: {type(error).__name__}: {error}", HINT) from None
    names = {name for name, *_ in named}
    possible = [attribute for attribute in survey.attributes if attribute.role == "area"]
    chosen = max(possible, key=lambda attribute: len(names.intersection(attribute.values)), default=None)
    if chosen is None or not names.intersection(chosen.values):
        what = f"none of its {len(named)} features is a value of an attribute with role area"
        raise SurveyError(f"{source}: {what} in survey {survey.id!r}", HINT)
    moves = (attribute for attribute in survey.attributes if attribute.role == "transition")
    ends = {place for attribute in moves for value in attribute.values for place in origin_and_destination(value)}
    shapes: list[dict[str, Any]] = [
        {"type": "Feature", "properties": {"name": name} | people, "geometry": geometry}
        for name, geometry, people in named
        if name in chosen.values or name in ends
    ]
    if sum(1 for shape in shapes for _ in _outline(shape["geometry"]["coordinates"])) > MOST_POINTS:
        raise SurveyError(f"{source}: the areas have more than {MOST_POINTS:,} points", "simplify the shapes first")
    areas, others = (
        [shape for shape in shapes if (shape["properties"]["name"] in chosen.values) == drawn]
        for drawn in (True, False)
    )
    return {"type": "FeatureCollection", "attribute": chosen.name, "features": areas, "places": others}


def neighbours(shapes: Mapping[str, Any]) -> dict[str, set[str]]:
    """The areas that each one has a border with: two points of their outlines are the same."""
    owners: defaultdict[tuple[float, float], set[str]] = defaultdict(set)
    for feature in shapes["features"]:
        for point in _outline(feature["geometry"]["coordinates"]):
            owners[point].add(feature["properties"]["name"])
    shared = Counter(pair for names in owners.values() for pair in permutations(sorted(names), 2))
    found: dict[str, set[str]] = {feature["properties"]["name"]: set() for feature in shapes["features"]}
    for (one, other), points in shared.items():
        if points > 1:
            found[one].add(other)
    return found


def grid_shapes(survey: Survey) -> dict[str, Any] | None:
    """The cells of the survey's first grid, as a page takes them; None without one, or with more than a map shows."""
    found = next((attribute for attribute in survey.attributes if attribute.grid is not None), None)
    if found is None or found.grid is None or found.k > MOST_CELLS:
        return None
    grid = found.grid
    x, y = (part for part in np.meshgrid(*grid.corners()))
    if grid.projection is not None:
        up, across = grid.projection.degrees(x, y)
    else:  # degrees nobody knows: a small map around 0, 0 keeps its proportions
        across, up = (x - grid.origin[0]) / METRES_OF_A_DEGREE, (y - grid.origin[1]) / METRES_OF_A_DEGREE
    points = np.round(np.stack([across, up], axis=-1), DIGITS).tolist()
    features = []
    for (row, column), name in zip(grid.area.positions.tolist(), found.values, strict=True):
        ring = [points[row + i][column + j] for i, j in ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": {"name": name}, "geometry": geometry})
    return {"type": "FeatureCollection", "attribute": found.name, "features": features}


def _read(feature: Any) -> tuple[str, dict[str, Any], dict[str, float]]:
    """A name, a shape, and how many people are expected there, if the file says so."""
    said, geometry = feature.get("properties") or {}, feature["geometry"]
    kind, people = geometry["type"], said.get("people")
    if kind not in _DEPTHS:
        raise ValueError(f"a shape is a {kind}")
    shape = {"type": kind, "coordinates": _points(geometry["coordinates"], _DEPTHS[kind])}
    expected = {} if people is None else {"people": max(0.0, _number(people))}
    return str(said.get("name", feature.get("id", ""))), shape, expected


def _outline(part: Any) -> Iterator[tuple[float, float]]:
    if isinstance(part[0], list):
        for inner in part:
            yield from _outline(inner)
    else:
        yield part[0], part[1]


def _points(part: Any, depth: int) -> list[Any]:
    if depth:
        return [_points(inner, depth - 1) for inner in part]
    return [[_number(point[0]), _number(point[1])] for point in part]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError("a coordinate, or the number of people, is not a number")
    return round(float(value), DIGITS)
