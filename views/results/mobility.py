"""The mobility report of a period: all windows that end with it, from the finals of the periods they include."""

from __future__ import annotations

from analytics.mobility import MobilityReport, mobility_report, tables_in_parts
from protocols.scheme import Scheme
from stream_app.finals import PublishedGuarantees, published_guarantees
from stream_app.log import TopicName
from views.past import Past
from views.results.model import Pieces
from views.results.verdict import verdict_of, verdict_reach
from views.view import View


class MobilityResult(MobilityReport):
    """A mobility report as it is published: with the guarantees of its survey, as every histogram has them."""

    guarantees: PublishedGuarantees
    pieces: Pieces = ()


def make(past: Past) -> MobilityResult:
    exact = past.history.agreed is None  # with noise, windows have visitors of their own: those that agree
    report = mobility_report(past.history, past.answers.answers if exact else None)
    alone = (past.period, past.period)
    windows = tuple(
        window.model_copy(update={"integrity": verdict_of(past)}) if (window.first, window.last) == alone else window
        for window in report.windows
    )
    return MobilityResult(**{**dict(report), "windows": windows}, guarantees=published_guarantees(past.scheme))


def reach(scheme: Scheme) -> int:
    return max(scheme.survey.horizon, verdict_reach(scheme))


MOBILITY = View(
    TopicName("mobility"), "mobility", MobilityResult, make, reach, lambda found, survey: tables_in_parts(found)
)
