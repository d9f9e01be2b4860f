"""Everything that was published of a survey as one page, and the file with the shapes of the survey's areas.

The file is beside the survey, is kept in the data directory of a run, and is read for pages.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from analytics.mobility import MobilityReport
from hearsay.data_directory import DataDirectory
from hearsay.survey_files import MAX_BESIDE_BYTES, read_text
from pages.about import survey_event
from pages.events import Event, result_events
from pages.shapes import grid_shapes, parse_shapes
from pages.static import static_page
from protocols.privacy import CentralLoss
from protocols.survey import Survey
from servers.private_files import private_directory
from views.forecasts import ForecastResult
from views.results import Live

HINT = "put it beside the survey, or leave areas out"
Periods = tuple[int, int]


def write_page(
    path: Path,
    survey: Survey,
    report: MobilityReport,
    live: Live | None = None,
    forecasts: Iterable[ForecastResult] = (),
    *,
    data: Path | None = None,
    areas: Path | None = None,
    baseline: Periods | None = None,
    readers: CentralLoss | None = None,
) -> None:
    """Write the page to a file. `baseline` are the periods that it compares with at first.

    `readers` is what readers of all results so far learn.
    """
    about = describe(survey, report.notes, data, areas, baseline, readers)
    page = static_page(survey.title or survey.id, [about, *result_events(survey, report, live, forecasts)])
    path.write_text(page, encoding="utf-8")


def describe(
    survey: Survey,
    notes: tuple[str, ...],
    data: Path | None,
    areas: Path | None,
    baseline: Periods | None = None,
    readers: CentralLoss | None = None,
) -> Event:
    """The event of a survey: with shapes, and what its data directory, if there is one, has noted of lost memos."""
    lost = data is not None and DataDirectory(data).loss_note.exists()
    shapes = _shapes(survey, data, areas)
    return survey_event(survey, shapes=shapes, baseline=baseline, notes=notes, loss_accepted=lost, readers=readers)


def _shapes(survey: Survey, data: Path | None, areas: Path | None) -> dict[str, Any] | None:
    """The shapes of areas: in the named file or directory, in the data directory, or here; None if none has the file.

    If the survey names no file, they are the cells of its grid.
    """
    if survey.areas is None:
        return grid_shapes(survey)
    for place in (areas, data and DataDirectory(data).areas, Path()):
        if place is not None:
            file = place if place.is_file() else place / survey.areas
            if file.is_file():
                return parse_shapes(read_text(file, MAX_BESIDE_BYTES, HINT), survey, str(file))
    return None


def read_areas(survey_file: Path, survey: Survey) -> str | None:
    """The text of the file beside the survey, which must have shapes of its areas; None if the survey names no file."""
    if survey.areas is None:
        return None
    file = survey_file.parent / survey.areas
    text = read_text(file, MAX_BESIDE_BYTES, HINT)
    parse_shapes(text, survey, str(file))
    return text


def keep_areas(text: str | None, survey: Survey, data: Path) -> None:
    """Keep a copy of the file in the data directory of a run, so that its pages have a map wherever they are made."""
    if text is not None and survey.areas is not None:
        (private_directory(DataDirectory(data).areas) / survey.areas).write_text(text, encoding="utf-8")
