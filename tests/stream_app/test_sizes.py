"""A survey that is accepted can be run: its largest records fit."""

from collections import Counter

import numpy as np
import pytest

from protocols.errors import SurveyError
from protocols.survey import Survey
from stream_app.counting import Statistics
from stream_app.counting.counters import PeriodCounts
from stream_app.counting.partials import Part
from stream_app.counting.state import OpenPeriod
from stream_app.finals import Final, NotCounted
from stream_app.merging.survey import HeldPart
from stream_app.sizes import check_sizes, counter_bytes, final_bytes, survey_bytes
from tests.helpers.surveys import of_size, scheme_with


@pytest.mark.parametrize("terms", [(65_536, 7, 1), (20_000, 7, 3), (3, 365, 40)], ids=str)
def test_computed_sizes_are_those_of_the_largest_records(terms: tuple[int, int, int]) -> None:
    k, horizon, attributes = terms
    asked = [of_size(k, f"a{place}") for place in range(attributes)]
    scheme = scheme_with(*asked, id="s" * 20, eps=1, horizon=horizon)
    gaps, n = np.arange(1, horizon + 1, dtype=np.uint16), np.full(horizon, 1 << 62)
    widths = {q.name: np.full(q.mechanism.encoding.widths, 1 << 62) for q in scheme.questions}
    full = {q.name: Statistics(gaps, n, np.full((horizon, q.k), 1 << 62), widths[q.name]) for q in scheme.questions}
    late = dict.fromkeys(range(1 << 30, (1 << 30) + horizon), 1 << 62)
    period = OpenPeriod(scheme, PeriodCounts(scheme, full), offset=1 << 62, late=Counter(late))
    period.rejects.update({f"a reason that is long enough {place}": 1 << 62 for place in range(12)})
    part = HeldPart(1 << 62, Part("s" * 20, 1 << 31, 999, 1 << 62, True, full, late, 1 << 62))
    measured = max(len(period.encode()), len(part.encode()))
    assert len(Final.of(scheme, 1 << 31, full, NotCounted(1 << 62, late)).encode()) < final_bytes(scheme.survey)
    assert measured <= counter_bytes(scheme.survey) < measured + 2048 + 128 * attributes
    assert survey_bytes(scheme.survey) == len(scheme.survey.model_dump_json().encode())
    check_sizes(scheme.survey)


@pytest.mark.long(part="memory")
def test_a_million_values_with_fresh_hashes_can_run_and_terms_that_no_device_reads_cannot() -> None:
    def sized(k: int, mechanism: str = "auto") -> Survey:
        attribute = {"name": "a", "range": {"last": k - 1}, "mechanism": mechanism}
        return scheme_with(attribute, eps=1).survey

    check_sizes(sized(1_000_000))
    assert counter_bytes(sized(1_000_000)) == 2048 + 128 + 1 + 32 + 18 + 8_000_000
    assert counter_bytes(sized(1000, "olh")) == 2048 + 128 + 1 + 32 + 18 + 4000 + (1 << 20)
    with pytest.raises(SurveyError, match=r"its terms take [\d,]+ bytes, and devices read at most 8,388,608"):
        names = [f"{chr(0x4E00 + place % 1000)}{place}" for place in range(700_000)]
        check_sizes(scheme_with({"name": "a", "values": names}, eps=1).survey, limit=1 << 30)


def test_a_survey_that_cannot_run_is_refused_by_its_size_and_told_what_would_fit() -> None:
    limit = 1 << 20

    def sized(k: int, horizon: int) -> None:
        asked = [of_size(k // 2, name) for name in "ab"]
        check_sizes(scheme_with(*asked, eps=1, horizon=horizon).survey, limit)

    with pytest.raises(SurveyError, match="up to 1,187,662 bytes, 8 for each value and gap, and") as refused:
        sized(12_000, 11)
    assert refused.value.hint == "use a horizon of at most 9, or at most 10,551 values in all"
    sized(12_000, 9)
    sized(10_550, 11)
    with pytest.raises(SurveyError, match="finals take") as refused:
        sized(2 * 65_536, 1)
    assert refused.value.hint == "use at most 63,339 values in all"
    sized(63_338, 1)
    with pytest.raises(SurveyError, match="attribute 'stay': its role dwell takes 72,000,000 bytes") as refused:
        check_sizes(scheme_with(of_size(3000, "stay", role="dwell"), eps=1).survey)
    assert refused.value.hint.startswith("use at most 2,896 values")
    check_sizes(scheme_with(of_size(2896, "stay", role="dwell"), eps=1).survey)
    with pytest.raises(SurveyError, match=r"it takes [\d,]+ bytes, and a record at most 900"):
        check_sizes(scheme_with(of_size(200), eps=1).survey, limit=900)
    with pytest.raises(SurveyError, match="forecasts of 2,001 values and groups; at most 2,000"):
        check_sizes(scheme_with(of_size(2000), eps=1, forecast={"ahead": 1}).survey)
    check_sizes(scheme_with(of_size(1999), eps=1, forecast={"ahead": 1}).survey)
