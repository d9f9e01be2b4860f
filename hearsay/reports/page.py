"""Everything that was published of a survey as one page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from analytics.mobility import MobilityReport
from pages.about import survey_event
from pages.events import result_events
from pages.static import static_page
from protocols.survey import Survey
from views.forecasts import ForecastResult
from views.results import Live


def report_page(
    survey: Survey,
    report: MobilityReport,
    live: Live | None = None,
    forecasts: Iterable[ForecastResult] = (),
    *,
    baseline: range | None = None,
    shapes: Mapping[str, Any] | None = None,
    loss_accepted: bool = False,
) -> str:
    """The page. `baseline` are the periods that it compares with at first; `loss_accepted`: memos were lost once."""
    about = survey_event(
        survey,
        shapes=shapes,
        baseline=None if baseline is None else (baseline[0], baseline[-1]),
        notes=report.notes,
        loss_accepted=loss_accepted,
    )
    return static_page(survey.title or survey.id, [about, *result_events(survey, report, live, forecasts)])


def write_page(path: Path, page: str) -> None:
    """Write a page to a file, and make its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
