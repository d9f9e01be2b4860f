"""Which areas of a survey's map will be precise, and which neighbours to merge."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analytics.areas import PRECISE, Merged, expected_errors, merge_neighbours
from hearsay.survey_files import MAX_BESIDE_BYTES, read_text
from pages.shapes import HINT, neighbours, parse_shapes
from protocols.scheme import Scheme
from protocols.survey import Survey


@dataclass(frozen=True)
class AreasPlan:
    """The areas of a map, each alone (`areas`) and merged (`proposed`)."""

    attribute: str
    names: Sequence[str]
    supposed: str
    areas: Sequence[Merged]
    proposed: Sequence[Merged]

    def as_json(self) -> dict[str, Any]:
        def record(one: Merged) -> dict[str, Any]:
            names, error = [self.names[area] for area in one.areas], one.error if one.share else None
            return {"areas": names, "share": one.share, "relative_error": error, "precise": one.precise}

        listed = {"areas": list(map(record, self.areas)), "proposed": list(map(record, self.proposed))}
        return {"attribute": self.attribute, "wanted": PRECISE, **listed}


def plan_areas(survey: Survey, file: Path, devices: int) -> AreasPlan:
    """For so many devices in a period. People are where the map says (`people` of its features), or everywhere."""
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
    return AreasPlan(
        question.name,
        names,
        supposed,
        [merged([area]) for area in drawn],
        merge_neighbours(drawn, near, merged),
    )
