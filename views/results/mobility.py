"""The mobility report of a period: all windows that end with it, from the finals of the periods they include."""

from collections.abc import Iterable

from analytics.columns import Part
from analytics.mobility import MobilityReport, mobility_report, released_report, tables_in_parts
from protocols.survey import Survey
from stream_app.finals import PublishedGuarantees, published_guarantees
from stream_app.log import TopicName
from views.past import Past, released_windows
from views.results.verdict import verdict_of, verdict_reach
from views.view import Pieces, View

ADDED = ("change", "baseline", "nowcast", "truth")  # by readers of reports: nobody has published them


class MobilityResult(MobilityReport):
    """A mobility report as it is published: with the guarantees of its survey, as every histogram has them."""

    schema_version: int = 9
    guarantees: PublishedGuarantees
    pieces: Pieces = ()


def make(past: Past) -> MobilityResult:
    if past.newest.windows is None:
        report = mobility_report(past.history, past.answers.answers)
    else:
        report = released_report(released_windows(past.scheme, past.newest))
    alone = (past.period, past.period)
    windows = tuple(
        window.model_copy(update={"integrity": verdict_of(past)}) if (window.first, window.last) == alone else window
        for window in report.windows
    )
    version = report.schema_version if past.scheme.survey.central is None else max(8, report.schema_version)
    published = dict(report) | {"schema_version": version, "windows": windows}
    return MobilityResult(**published, guarantees=published_guarantees(past.scheme))


def tables(found: MobilityResult, survey: Survey) -> dict[str, Iterable[Part]]:
    return {name: map(_published, parts) for name, parts in tables_in_parts(found).items()}


def _published(part: Part) -> Part:
    kept = {name: column for name, column in part.columns.items() if name.partition("_")[0] not in ADDED}
    return Part(part.rows, kept)


MOBILITY = View(TopicName("mobility"), "mobility", MobilityResult, make, verdict_reach, tables, tables_version=9)
