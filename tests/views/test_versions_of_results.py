"""Results say which version of their model they have: programs that know only an earlier one refuse them."""

import pytest

from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from stream_app.counting import PeriodCounts
from tests.helpers.published import build_histogram

TERMS = (
    "{{id: s, start: 2026-01-01T00:00Z, period: 1d, eps: 2, {extra} "
    "attributes: [{{name: a, {asked}values: [x, y, z]}}]}}"
)


@pytest.mark.parametrize(
    ("extra", "asked", "version"),
    [
        pytest.param("", "", 5, id="one value"),
        pytest.param("", "several: 2, ", 6, id="several values"),
        pytest.param("central: {delta: 1e-8}, ", "", 7, id="with a central figure"),
    ],
)
def test_a_histogram_has_a_later_version_only_if_it_says_more(extra: str, asked: str, version: int) -> None:
    scheme = Scheme(parse_survey(TERMS.format(extra=extra, asked=asked)))
    histogram = build_histogram("final", scheme, 0, PeriodCounts(scheme).snapshot())
    assert histogram.schema_version == version
