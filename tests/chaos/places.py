"""Places and pairs while the workers that count them are killed: finals are those of a recount, answer by answer."""

import numpy as np

from analytics.estimation import decimals, estimate
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.chaos.frames import FramesOrdeal
from views.results import Histogram

SURVEY = """
id: places
start: 2026-01-01T00:00:00Z
period: 1d
clock: source
horizon: 3
eps_inf: 4
eps_1: 2
attributes:
  - name: place
    grid: {at: [47, 6], cell: 500m, columns: 16, rows: 12}
    geo_inf: {level: 2.2, radius: 400m}
    geo: {level: 1.1, radius: 400m}
  - name: home
    grid: {at: [47, 6], cell: 500m, columns: 8, rows: 6, inside: [x1-6y0, x0-6y1, x0-3y2, x6-7y2, x0-3y3, x1-5y4]}
    geo_inf: {level: 2.2, radius: 400m}
    geo: {level: 1.1, radius: 400m}
  - {name: age, range: {last: 4}, mechanism: l-grr}
  - {name: purpose, values: [work, home, other], mechanism: l-grr}
crosses: [{of: [age, purpose], mechanism: l-grr}]
"""


class PlacesOrdeal(FramesOrdeal):
    """Beside the counts, the shares of places that were published are those of the recount."""

    what = "places and pairs"
    scheme = Scheme(parse_survey(SURVEY))

    def _compare(self, histogram: Histogram, question: Question, supports: np.ndarray) -> None:
        super()._compare(histogram, question, supports)
        if question.attribute.placed:
            published, counts = histogram.attribute(question.name), supports.sum(axis=0)
            expected = estimate(counts, counts.sum(), question.channel, population=histogram.n)
            assert published.estimate is not None and published.error is not None
            digit = 10.0 ** -(decimals(expected.error) or 0)  # the last one that is published
            for shown, recounted in ((published.estimate, expected.value), (published.error, expected.error)):
                assert np.abs(shown - recounted).max() < digit, "estimates of the same counts differ by digits alone"
