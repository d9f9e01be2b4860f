"""Files beside a survey: values of an attribute, one in each line, and areas of a map as groups of a grid's cells."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pydantic import ValidationError

from protocols.arrays.aliases import Floats, Mask
from protocols.errors import SurveyError
from protocols.survey.attribute import FILE_PATTERN, Attribute
from protocols.survey.grid import Grid, runs_of
from protocols.survey.model import Survey

ReadBeside = Callable[[str], str]  # the name of a file beside the survey's -> its text; raises SurveyError
KEY = "values_from"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,120}\.txt")
HINT = "write a FeatureCollection of Polygons or MultiPolygons, with the name of each area in the property name"


def with_area_groups(survey: Survey, texts: dict[str, str]) -> Survey:
    """The survey, with the areas of its `areas` files (text by attribute) as groups. Raises SurveyError.

    A cell belongs to the areas that its centre is in. Areas without a cell inside are left out.
    """
    found = survey.model_dump()
    for attribute, declared in zip(survey.attributes, found["attributes"], strict=True):
        if attribute.name in texts:
            declared["groups"] = {**declared["groups"], **area_groups(texts[attribute.name], attribute)}
    return Survey.model_validate(found)


def fill_in_cells(data: dict[str, Any], source: str, read_beside: ReadBeside | None) -> None:
    """Replace `inside: areas` of grids by the cells of the areas in the file, which become part of the terms.

    What is wrong otherwise is left to validation.
    """
    attributes = data.get("attributes")
    for attribute in attributes if isinstance(attributes, list) else []:
        grid, name = (attribute.get(key) if isinstance(attribute, dict) else None for key in ("grid", "areas"))
        if not isinstance(grid, dict) or grid.get("inside") != "areas" or not isinstance(name, str):
            continue
        if read_beside is None or not re.fullmatch(FILE_PATTERN, name):
            continue
        try:
            whole = Grid.model_validate({**grid, "inside": None})
        except ValidationError:
            continue
        areas = _cells_of_areas(read_beside(name), f"{source}: attribute {attribute.get('name')!r}", whole)
        grid["inside"] = list(runs_of(list(set().union(*areas.values())), whole.columns))


def area_groups(text: str, attribute: Attribute) -> dict[str, list[str]]:
    """The cells of each area in a GeoJSON text: in degrees where the grid knows them, otherwise in its metres.

    >>> place = Attribute.model_validate({"name": "place", "geo": {"level": 1, "radius": "400m"},
    ...     "grid": {"crs": "own", "cell": "100m", "columns": 3, "rows": 2}})
    >>> square = [[[0, 0], [199, 0], [199, 99], [0, 99], [0, 0]]]
    >>> feature = {"properties": {"name": "south"}, "geometry": {"type": "Polygon", "coordinates": square}}
    >>> area_groups(json.dumps({"features": [feature]}), place)
    {'south': ['x0y0', 'x1y0']}
    """
    grid = attribute.grid
    assert grid is not None, "only grids have areas"
    areas = _cells_of_areas(text, f"attribute {attribute.name!r}", grid)
    numbers = grid.area.positions @ np.array([grid.columns, 1])
    names = dict(zip(numbers.tolist(), attribute.values, strict=True))
    groups = {name: [names[number] for number in cells if number in names] for name, cells in areas.items()}
    return {name: cells for name, cells in groups.items() if cells}


def _cells_of_areas(text: str, where: str, grid: Grid) -> dict[str, list[int]]:
    """The numbers row * columns + column of all cells of each area."""
    east, north = ((ends[1:] + ends[:-1]) / 2 for ends in grid.corners())
    x, y = (part.ravel() for part in np.meshgrid(east, north))
    areas: dict[str, list[int]] = {}
    try:
        for name, rings in _areas(json.loads(text)):
            inside = np.zeros(len(x), dtype=np.bool_)
            for ring in rings:
                corners = np.asarray(ring, dtype=np.float64)[:, :2]
                across, up = corners.T
                if grid.projection is not None:
                    across, up = grid.projection.metres(up, across)
                inside ^= _within(x, y, across, up)
            if inside.any():
                areas.setdefault(name, []).extend(np.flatnonzero(inside).tolist())
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        what = f"{where}: its areas cannot be read: {type(error).__name__}: {error}"
        raise SurveyError(what, HINT) from None
    if not areas:
        raise SurveyError(f"{where}: none of its areas has the centre of a cell of its grid", HINT)
    return areas


def _areas(document: Any) -> Iterator[tuple[str, list[Any]]]:
    """The name of each feature, and all rings of its polygons."""
    for feature in document["features"]:
        name = str((feature.get("properties") or {}).get("name", feature.get("id", "")))
        geometry = feature["geometry"]
        if geometry["type"] not in ("Polygon", "MultiPolygon"):
            raise ValueError(f"a shape is a {geometry['type']}")
        parts = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
        yield name, [ring for part in parts for ring in part]


def _within(x: Floats, y: Floats, across: Floats, up: Floats) -> Mask:
    """Which points are inside a ring: those from which a line to the east crosses it an odd number of times."""
    found = np.zeros(len(x), dtype=np.bool_)
    for x0, y0, x1, y1 in zip(across[:-1], up[:-1], across[1:], up[1:], strict=True):
        crosses = (y0 > y) != (y1 > y)
        if crosses.any():
            found[crosses] ^= x[crosses] < (x1 - x0) * (y[crosses] - y0) / (y1 - y0) + x0
    return found


def fill_in_values(data: dict[str, Any], source: str, read_beside: ReadBeside | None) -> None:
    """Replace `values_from` of attributes by the values in the file. What is wrong otherwise is left to validation.

    >>> survey = {"attributes": [{"name": "a", "values_from": "names.txt"}]}
    >>> fill_in_values(survey, "survey.yaml", lambda name: "north\\nsouth\\n")
    >>> survey
    {'attributes': [{'name': 'a', 'values': ['north', 'south']}]}
    """
    attributes = data.get("attributes")
    for attribute in attributes if isinstance(attributes, list) else []:
        if not isinstance(attribute, dict) or KEY not in attribute:
            continue
        where, name = f"{source}: attribute {attribute.get('name')!r}: {KEY}", attribute.pop(KEY)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise SurveyError(f"{where} is not the name of a file", "write a name such as names.txt, without a path")
        if "values" in attribute or "range" in attribute:
            raise SurveyError(f"{where} has other values beside it", "keep one of values, range and values_from")
        if read_beside is None:
            raise SurveyError(f"{where} is read from beside a survey's file", "write the survey to a file")
        attribute["values"] = read_beside(name).splitlines()
