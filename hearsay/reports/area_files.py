"""The file with the shapes of a survey's areas: found beside the survey, kept in the data directory, read for pages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hearsay.data_directory import DataDirectory
from hearsay.survey_files import MAX_BESIDE_BYTES, read_text
from pages.shapes import grid_shapes, parse_shapes
from protocols.errors import SurveyError
from protocols.survey import Survey

HINT = "add the file, or leave areas out"


def area_shapes(survey: Survey, places: Iterable[Path]) -> dict[str, Any] | None:
    """The shapes that a survey names a file of, from the first of these places that has the file; None if none has.

    Without such a file, the cells of a survey's grid.
    """
    if survey.areas is None:
        return grid_shapes(survey)
    for place in places:
        file = place if place.is_file() else place / survey.areas
        if file.is_file():
            return parse_shapes(read_text(file, MAX_BESIDE_BYTES, HINT), survey, str(file))
    return None


def keep_areas(survey_file: Path, survey: Survey, data: Path) -> None:
    """Keep a copy of the file in the data directory of a run, so that its pages have a map wherever they are made."""
    if survey.areas is None:
        return
    file = survey_file.parent / survey.areas
    if not file.is_file():
        what = f"{survey_file}: areas = {survey.areas}: there is no such file beside it"
        raise SurveyError(what, HINT)
    text = read_text(file, MAX_BESIDE_BYTES, HINT)
    parse_shapes(text, survey, str(file))
    kept = DataDirectory(data).areas
    kept.mkdir(exist_ok=True)
    (kept / survey.areas).write_text(text, encoding="utf-8")
