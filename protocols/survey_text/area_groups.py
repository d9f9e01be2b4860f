"""Areas of a map as groups of the cells of a grid: for results only, no part of a survey's terms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from protocols.arrays.aliases import Floats, Mask
from protocols.errors import SurveyError
from protocols.survey.attribute import Attribute
from protocols.survey.model import Survey

HINT = "write a FeatureCollection of Polygons or MultiPolygons, with the name of each area in the property name"


def with_area_groups(survey: Survey, texts: dict[str, str]) -> Survey:
    """The survey, with the areas of its `areas` files (text by attribute) as groups. Raises SurveyError.

    A cell belongs to the areas that its centre is in. Areas without a cell are left out.
    """
    found = survey.model_dump()
    for attribute, declared in zip(survey.attributes, found["attributes"], strict=True):
        if attribute.name in texts:
            declared["groups"] = {**declared["groups"], **area_groups(texts[attribute.name], attribute)}
    return Survey.model_validate(found)


def area_groups(text: str, attribute: Attribute) -> dict[str, list[str]]:
    """The cells of each area in a GeoJSON text: in degrees where the grid knows them, otherwise in its metres.

    >>> place = Attribute.model_validate({"name": "place", "geo": {"level": 1, "radius": "400m"},
    ...     "grid": {"crs": "own", "cell": "100m", "columns": 3, "rows": 2}})
    >>> square = [[[0, 0], [199, 0], [199, 99], [0, 99], [0, 0]]]
    >>> feature = {"properties": {"name": "south"}, "geometry": {"type": "Polygon", "coordinates": square}}
    >>> area_groups(json.dumps({"features": [feature]}), place)
    {'south': ['x0y0', 'x1y0']}
    """
    grid, names = attribute.grid, attribute.values
    assert grid is not None, "only grids have areas"
    east, north = ((ends[1:] + ends[:-1]) / 2 for ends in grid.corners())
    x, y = (part.ravel() for part in np.meshgrid(east, north))
    groups: dict[str, list[str]] = {}
    try:
        for name, rings in _areas(json.loads(text)):
            inside = np.zeros(grid.k, dtype=np.bool_)
            for ring in rings:
                corners = np.asarray(ring, dtype=np.float64)[:, :2]
                across, up = corners.T
                if grid.projection is not None:
                    across, up = grid.projection.metres(up, across)
                inside ^= _within(x, y, across, up)
            if inside.any():
                groups.setdefault(name, []).extend(names[cell] for cell in np.flatnonzero(inside))
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        what = f"attribute {attribute.name!r}: its areas cannot be read: {type(error).__name__}: {error}"
        raise SurveyError(what, HINT) from None
    if not groups:
        raise SurveyError(f"attribute {attribute.name!r}: none of its areas has the centre of a cell of its grid", HINT)
    return groups


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
