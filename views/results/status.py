"""The live status of a survey: provisional histograms of its open periods, and the rows refused so far."""

from analytics.columns import ResultModel
from stream_app.log import Loss, TopicName
from views.past import Open, PeriodAnswers
from views.results.histogram import Histogram, build_histogram
from views.view import Pieces, View


class Live(ResultModel):
    """The status of a survey: provisional histograms of its open periods, and the rows refused so far."""

    schema_version: int = 8
    survey: str
    closed_through: int
    open: tuple[Histogram, ...]
    rejects: dict[str, int]
    lates: dict[int, int]
    lost: tuple[Loss, ...] = ()
    pieces: Pieces = ()


def make(found: Open) -> Live:
    status = found.status
    return Live(
        schema_version=7 if found.scheme.survey.central is None else 8,
        survey=status.survey,
        closed_through=status.closed_through,
        open=tuple(_provisional(found, period, n) for period, n in sorted(status.open.items())),
        rejects=status.rejects,
        lates=status.lates,
        lost=status.lost,
    )


def _provisional(found: Open, period: int, n: int) -> Histogram:
    """The histogram of an open period. Under a minimum nothing is known of it but a rounded number of reports."""
    if period in found.counted:
        return build_histogram(
            "provisional", found.scheme, period, PeriodAnswers.of(found.scheme, found.counted[period])
        )
    return build_histogram("provisional", found.scheme, period, PeriodAnswers({}, {}, n))


LIVE = View(TopicName("live"), "live", Live, make)
