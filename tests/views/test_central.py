"""What is published with `central`: no byte depends on who gave which answer, but for sums over a whole period."""

from gzip import decompress
from pathlib import Path

import numpy as np
import pytest

from protocols.arrays import Whole
from protocols.privacy.central import central
from protocols.scheme import Scheme
from protocols.survey import CalendarVisits, Survey
from protocols.survey_text import parse_survey
from protocols.wire import Frame, encode_frame
from stream_app.finals import CentralGuarantees
from tests.helpers.collecting import collecting
from views.results.histogram import OPEN, Histogram
from views.results.mobility import SEVERAL, MobilityResult
from views.results.status import Live

GAPS = np.repeat([1, 2, 3], [40, 30, 30]).astype(np.uint16)
ANSWERS = np.tile(np.array([0, 1, 2, 1, 0], dtype=np.uint8), 20)
GAPS_COUNTED = "horizon: 3"


def survey(
    mechanism: str = "l-grr",
    central: str = "central: {delta: 1e-8},",
    minimum: int = 20,
    visitors: str = GAPS_COUNTED,
) -> Survey:
    return parse_survey(
        f"{{id: colours, start: 2026-01-09T00:00Z, period: 1d, {visitors}, eps_inf: 4, eps_1: 2, clock: source, "
        f"minimum: {minimum}, forecast: {{ahead: 2}}, {central} "
        f"attributes: [{{name: colour, values: [red, green, blue], mechanism: {mechanism}}}]}}"
    )


def everything(
    directory: Path, asked: Survey, gaps: Whole, answers: Whole, whole: bool = True
) -> list[tuple[str, bytes]]:
    """All that is published of four periods, in order: finals, live results and what is made of them."""
    scheme, column = Scheme(asked), answers
    if scheme.questions[0].mechanism.name == "l-osue":
        column = np.array([[1], [2], [5]], dtype=np.uint8)[answers]
    with collecting(directory, asked) as (collection,):
        for period in range(4):
            tokens, rows = np.arange(1, len(gaps) + 1, dtype=np.uint64), gaps
            if isinstance(asked.visits, CalendarVisits):
                possible = sorted(asked.visits.possible(period))
                rows = np.array(possible, dtype=np.uint16)[np.minimum(gaps, len(possible)) - 1]
            frame = Frame(asked.id, scheme.fingerprint, period, tokens, rows, {"colour": column})
            collection.send(encode_frame(frame, scheme))
            if whole or period < 3:
                collection.close(period)
        return [(str(output.topic), output.value or b"") for _, output in collection.store.after(0)]


@pytest.mark.parametrize(
    ("mechanism", "minimum", "visitors"),
    [
        pytest.param("l-grr", 0, GAPS_COUNTED, id="gaps"),
        ("l-grr", 20, GAPS_COUNTED),
        ("l-osue", 0, GAPS_COUNTED),
        ("l-osue", 20, GAPS_COUNTED),
        pytest.param("l-osue", 0, "visitors: {units: [week, month, ever]}", id="flags"),
        pytest.param("l-grr", 20, "visitors: {units: [week, ever]}", id="flags-minimum"),
    ],
)
def test_no_published_byte_changes_if_two_devices_with_different_gaps_swap_answers(
    tmp_path: Path, mechanism: str, minimum: int, visitors: str
) -> None:
    swapped = ANSWERS.copy()
    one, other = 1, 95  # of the first gap and of the last one
    assert ANSWERS[one] != ANSWERS[other] and GAPS[one] != GAPS[other]
    swapped[[one, other]] = ANSWERS[[other, one]]
    for term, same in (("central: {delta: 1e-8},", True), ("", False)):
        asked = survey(mechanism, term, minimum, visitors)
        found = [
            everything(tmp_path / f"{term[:3]}{number}", asked, GAPS, answers, whole=False)
            for number, answers in enumerate((ANSWERS, swapped))
        ]
        assert found[0] and (found[0] == found[1]) == same


def test_live_results_have_no_answers_and_no_figure_and_say_how_many_reported(tmp_path: Path) -> None:
    few = everything(tmp_path / "a", survey(minimum=0), GAPS, ANSWERS, whole=False)
    live = [value for topic, value in few if topic == "live"]
    (histogram,) = Live.model_validate_json(decompress(live[-1])).open
    colour = histogram.attribute("colour")
    assert (histogram.n, colour.estimate, colour.suppressed) == (100, None, "open")
    assert isinstance(histogram.guarantees, CentralGuarantees)
    assert histogram.guarantees.central.epsilon is None and histogram.guarantees.central.why == OPEN
    (*_, mobility) = (decompress(value) for topic, value in few if topic == "mobility")
    guarantees = MobilityResult.model_validate_json(mobility).guarantees
    assert isinstance(guarantees, CentralGuarantees)
    assert guarantees.central_since_first.epsilon is None and guarantees.central.why == SEVERAL
    other = everything(tmp_path / "b", survey(minimum=0), GAPS, ANSWERS[::-1].copy(), whole=False)
    assert [value for topic, value in other if topic == "live"] == live


def test_the_answer_of_a_gap_that_one_device_has_is_in_no_record(tmp_path: Path) -> None:
    alone = GAPS.copy()
    alone[GAPS == 2] = 1
    alone[99] = 2
    changed = ANSWERS.copy()
    changed[[99, 1]] = ANSWERS[[1, 99]]
    found = [everything(tmp_path / str(i), survey(), alone, answers) for i, answers in enumerate((ANSWERS, changed))]
    assert found[0] == found[1]


def test_each_final_has_the_figure_of_its_period_and_of_all_up_to_it(tmp_path: Path) -> None:
    asked = survey()
    found = [decompress(value) for topic, value in everything(tmp_path, asked, GAPS, ANSWERS) if topic == "histograms"]
    finals = [Histogram.model_validate_json(one).guarantees for one in found]
    assert len(finals) == 4
    for periods, promised in enumerate(finals, 1):
        assert isinstance(promised, CentralGuarantees)
        assert promised.central == central(Scheme(asked).guarantees, {"colour": [100]})
        assert promised.central_since_first == central(Scheme(asked).guarantees, {"colour": [100] * periods})
