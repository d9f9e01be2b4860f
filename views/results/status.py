"""The live status of a survey: provisional histograms of its open periods, and the rows refused so far."""

from analytics.columns import ResultModel
from stream_app.log import Loss, TopicName
from views.past import Open, PeriodAnswers
from views.results.histogram import Histogram, build_histogram
from views.view import Pieces, View


class Live(ResultModel):
    """The status of a survey: provisional histograms of its open periods, and the rows refused so far."""

    schema_version: int = 9
    survey: str
    closed_through: int
    open: tuple[Histogram, ...]
    rejects: dict[str, int]
    lates: dict[int, int]
    lost: tuple[Loss, ...] = ()
    pieces: Pieces = ()


def make(found: Open) -> Live:
    status, known = found.status, dict[int, PeriodAnswers]()
    for period, n in sorted(status.open.items()):  # with publish_from only a rounded number is known
        counted = found.counted.get(period)
        known[period] = PeriodAnswers({}, {}, n) if counted is None else PeriodAnswers.of(found.scheme, counted)
    return Live(
        schema_version=7 if found.scheme.survey.central is None else 9,
        survey=status.survey,
        closed_through=status.closed_through,
        open=tuple(build_histogram("provisional", found.scheme, period, own) for period, own in known.items()),
        rejects=status.rejects,
        lates=status.lates,
        lost=status.lost,
    )


LIVE = View(TopicName("live"), "live", Live, make)
