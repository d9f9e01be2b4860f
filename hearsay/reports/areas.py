"""Which areas of a survey's map will be precise, and which neighbours to merge."""

from pathlib import Path
from typing import Any

import numpy as np

from analytics.areas import PRECISE, Merged, expected_errors, merge_neighbours
from hearsay.survey_files import MAX_BESIDE_BYTES, read_text
from pages.shapes import HINT, neighbours, parse_shapes
from protocols.scheme import Scheme
from protocols.survey import Survey


def plan_areas(survey: Survey, file: Path, devices: int) -> tuple[dict[str, Any], str]:
    """The areas of a map for so many devices in a period, each alone (`areas`) and merged (`proposed`), as JSON.

    People are where the map says (`people` of its features), or everywhere: the second is this, in words.
    """
    path, scheme = file.parent / str(survey.areas), Scheme(survey)
    shapes = parse_shapes(read_text(path, MAX_BESIDE_BYTES, HINT), survey, str(path))
    question = scheme.question(shapes["attribute"])
    names = question.attribute.values
    people = {one["properties"]["name"]: one["properties"].get("people") for one in shapes["features"]}
    known = None not in people.values() and any(people.values())
    shares = np.array([people.get(name) or 0.0 if known else 1.0 for name in names])
    shares = np.pad(shares / shares.sum(), (0, question.channel.k - len(names)))
    reports = devices * scheme.answering_share(question)
    merged = expected_errors(question.channel, reports, devices, shares)
    drawn = [area for area, name in enumerate(names) if name in people]
    near = {names.index(name): {names.index(other) for other in found} for name, found in neighbours(shapes).items()}
    supposed = ", with the people that the map expects" if known else ", if all have as many people"

    def record(one: Merged) -> dict[str, Any]:
        listed, error = [names[area] for area in one.areas], one.error if one.share else None
        return {"areas": listed, "share": one.share, "relative_error": error, "precise": one.precise}

    alone, proposed = [merged([area]) for area in drawn], merge_neighbours(drawn, near, merged)
    listed = {"areas": list(map(record, alone)), "proposed": list(map(record, proposed))}
    return {"attribute": question.name, "wanted": PRECISE, **listed}, supposed
