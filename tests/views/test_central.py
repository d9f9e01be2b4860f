"""What is published with `central`: no byte depends on who gave which answer, but for sums over a whole period."""

import json
import tarfile
from collections import Counter
from gzip import decompress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hearsay.library.results import read_results
from hearsay.reports.files import open_results
from pages.about import survey_event
from pages.dashboard.making import Making
from protocols.arrays import Whole
from protocols.planning import factor_of
from protocols.privacy.central import central
from protocols.scheme import Scheme
from protocols.survey import CalendarVisits, Survey
from protocols.survey_text import parse_survey
from protocols.wire import Frame, encode_frame
from stream_app.log import Come, Output
from stream_app.log.codec import compress
from tests.helpers.collecting import collecting
from tests.helpers.nursery import run
from views.past import PeriodAnswers
from views.reading import Follower
from views.results.histogram import HISTOGRAMS, AttributeHistogram, Histogram, build_histogram
from views.results.mobility import MobilityResult
from views.results.readers import crowds_of, readers_figure
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
    for term, same in (("central: {delta: 1e-8},", True), ("", minimum > 0)):  # then no counts by gap are published
        asked = survey(mechanism, term, minimum, visitors)
        found = [
            everything(tmp_path / f"{term[:3]}{number}", asked, GAPS, answers, whole=False)
            for number, answers in enumerate((ANSWERS, swapped))
        ]
        assert found[0] and (found[0] == found[1]) == same


def test_live_results_have_no_answers_and_say_how_many_reported(tmp_path: Path) -> None:
    few = everything(tmp_path / "a", survey(minimum=0), GAPS, ANSWERS, whole=False)
    live = [value for topic, value in few if topic == "live"]
    found = Live.model_validate_json(decompress(live[-1]))
    (histogram,) = found.open
    colour = histogram.attribute("colour")
    assert (histogram.n, colour.estimate, colour.suppressed) == (100, None, "open")
    (*_, mobility) = (decompress(value) for topic, value in few if topic == "mobility")
    versions = (
        found.schema_version,
        histogram.schema_version,
        MobilityResult.model_validate_json(mobility).schema_version,
    )
    assert versions == (9, 7, 8)
    for published in (decompress(live[-1]), mobility):
        assert b"central" not in published.replace(b"central_", b""), "no figure is stated"
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


def test_finals_are_made_without_a_composition_and_readers_compute_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = survey()

    def refused(*given: Any) -> Any:
        raise AssertionError("a final has computed what readers learn")

    with monkeypatch.context() as making:
        for name in ("walks_of", "losses_of", "together"):
            making.setattr(f"protocols.privacy.central.figure.{name}", refused)
        made = everything(tmp_path, asked, GAPS, ANSWERS)
    assert HISTOGRAMS.reach(Scheme(asked)) == HISTOGRAMS.reach(Scheme(survey(central=""))) == 2, "finals that are kept"
    found = [Histogram.model_validate_json(decompress(value)) for topic, value in made if topic == "histograms"]
    assert len(found) == 4
    for periods in range(1, 5):
        known = crowds_of(Scheme(asked), found[:periods])
        assert known == {"colour": [100] * periods}
        assert readers_figure(Scheme(asked), known) == central(Scheme(asked).guarantees, known)
    lacking = [found[0], found[3]]
    assert crowds_of(Scheme(asked), lacking) == {"colour": [100, 0, 0, 100]}
    assert readers_figure(Scheme(survey(central="")), {"colour": [100]}) is None


def test_an_attribute_that_is_left_out_hides_nobody_if_its_noised_counts_are_in_the_final() -> None:
    few = AttributeHistogram(name="colour", mechanism="l-grr", values=("red",), n=None, suppressed="minimum")
    for noise, crowd in (("", 0), ("presence_epsilon: 1,", 1)):
        scheme = Scheme(survey(central=f"central: {{delta: 1e-8}}, {noise}"))
        histogram = build_histogram("final", scheme, 0, PeriodAnswers({}, {}, None))
        assert crowds_of(scheme, [histogram.model_copy(update={"attributes": (few,)})]) == {"colour": [crowd]}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was published when results stated the figure: histograms of version 6, live results of version 8."""
    directory = tmp_path_factory.mktemp("kept")
    with tarfile.open(Path(__file__).parents[1] / "states" / "central-stated.tar.xz") as archive:
        archive.extractall(directory, filter="data")
    return directory


def test_results_that_still_state_the_figure_are_read_and_their_readers_compute_the_same(kept: Path) -> None:
    messages = json.loads((kept / "messages.json").read_text())
    asked = survey(minimum=0)
    follower, stated, found = Follower(), [], []
    for each in messages:
        value = compress(each["value"].encode())
        read = follower.apply(Output(each["topic"], each["key"].encode(), value))
        assert read is not None
        if isinstance(read.result, Histogram):
            found.append(read.result)
            stated.append(json.loads(each["value"])["guarantees"]["central_since_first"])
    versions = {each["topic"]: json.loads(each["value"])["schema_version"] for each in messages}
    assert (versions["histograms"], versions["live"], versions["mobility"]) == (6, 8, 7)
    for periods, figure in enumerate(stated, 1):
        computed = readers_figure(Scheme(asked), crowds_of(Scheme(asked), found[:periods]))
        assert computed is not None and computed.model_dump(mode="json") == figure
    assert len(stated) == 3
    come = Come([asked], [(0, at, Output(one["topic"], one["key"].encode(), compress(one["value"].encode())))
                          for at, one in enumerate(messages)])  # fmt: skip
    results, documents = Making(frozenset(), survey_event, lambda report: report).apply(come)
    assert {result.key for result in results} >= {"mobility/colours/0", "mobility/colours/2", "live/colours"}
    assert any(document.key == "survey/colours" for document in documents)


def test_a_report_a_page_tables_and_a_dossier_of_such_results_have_the_figure_that_they_state(
    kept: Path, tmp_path: Path
) -> None:
    data, page = str(kept / "data"), tmp_path / "page.html"
    tables = read_results(data)
    assert tables.readers is not None and tables.readers.periods == 4
    with open_results("tiny", kept / "data", None) as (results, _):
        newest = list(results.values(HISTOGRAMS, "tiny").values())[-1]
    assert tables.readers.model_dump(mode="json") == json.loads(decompress(newest))["guarantees"]["central_since_first"]
    shown = run("report", "tiny", "--data", data, "--json")
    assert json.loads(shown.stdout)["readers"] == tables.readers.model_dump(mode="json")
    words = run("report", "tiny", "--data", data, "--html", str(page))
    assert words.returncode == 0, words.stderr
    assert "all results of 4 periods so far, if " in page.read_text()
    line = " ".join(run("report", "tiny", "--data", data).stdout.split())
    assert "Readers of all results so far (4 periods): the odds" in line
    assert f"a factor of at most {factor_of(tables.readers.epsilon)}, but for a chance of 1e-08" in line
    written = run("dossier", str(kept / "survey.yaml"), "--data", data, "--html", str(tmp_path / "dossier.html"))
    assert written.returncode == 0, written.stderr
    text = (tmp_path / "dossier.html").read_text()
    assert f"by a factor of at most {factor_of(tables.readers.epsilon)}" in text
    assert "If another survey asks the same people the same question" in text


def test_going_on_with_a_collection_that_stated_the_figure_writes_the_new_version(kept: Path) -> None:
    size = ["--devices", "400", "--periods", "5", "--seed", "5"]
    went_on = run("run", str(kept / "survey.yaml"), *size, "--data", str(kept / "data"))
    assert went_on.returncode == 0, went_on.stderr
    with open_results("tiny", kept / "data", None) as (results, _):
        found = results.histograms("tiny")
    assert [histogram.schema_version for histogram in found] == [6, 6, 6, 6, 7]


def test_a_page_computes_each_figure_once_and_none_of_what_only_plans_show(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[tuple[Any, ...]] = Counter()

    def counted(promise: Any, crowds: Any, **how: Any) -> Any:
        calls[json.dumps(crowds), json.dumps(how)] += 1
        return central(promise, crowds, **how)

    monkeypatch.setattr("protocols.planning.central.central", counted)
    survey_event(survey())
    assert sorted(calls.values()) == [1] * 4, "a day, a week, a month and a year, values constant"
