"""What pages are told about surveys, made of what has come."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pages.about import survey_event
from pages.dashboard.feed import Document
from pages.dashboard.making import Making, SurveyStatus
from pages.dashboard.streaming import text_of
from stream_app.finals import FinalKey
from stream_app.log.flushes import Come, Output
from stream_app.log.marks import Loss
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.published import come
from views.reading import Results
from views.results import HISTOGRAMS, MOBILITY, Histogram, Live, MobilityResult


@dataclass
class Collected:
    """Three periods of a survey: all messages of results, and those that are read here."""

    messages: list[tuple[int, int, Output]]
    finals: list[Histogram]
    reports: list[MobilityResult]


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    with collecting(tmp_path_factory.mktemp("colours"), small_survey()) as (collection,):
        collection.finish(*[[30, 20, 10]] * 3)
        messages = [(0, id, message) for id, message in collection.published()]
        results = Results(collection.store)
        return Collected(messages, results.histograms("colours"), results.mobility("colours"))


def making() -> Making:
    return Making(frozenset(), survey_event, lambda report: report)


def records(documents: list[Document]) -> dict[str, Any]:
    return {
        document.key: json.loads(text_of(document.segment).removeprefix(b"data: "))["record"] for document in documents
    }


@pytest.mark.parametrize(("extra", "lag"), [("", 160), ("presence_epsilon: 1,", None)])
def test_the_lag_says_no_more_than_the_survey_that_says_least(extra: str, lag: int | None) -> None:
    made = making()
    made.apply(Come([small_survey(), small_survey("hidden", extra)]))
    shown = records(made.statuses(175, False))
    assert shown["status/colours"]["lag"] == shown["status/hidden"]["lag"] == lag


def test_only_what_changed_is_sent_again() -> None:
    made = making()
    made.apply(Come([small_survey(), small_survey("other")]))
    assert set(records(made.statuses(None, False))) == {"status", "status/colours", "status/other"}
    assert made.statuses(None, False) == []
    assert set(records(made.statuses(None, True))) == {"status"}


def test_a_survey_is_described_with_the_notes_of_its_reports(colours: Collected) -> None:
    made = making()
    _, before = made.apply(Come([small_survey()]))
    _, after = made.apply(Come([], colours.messages))
    assert records(before)["survey/colours"]["notes"] == []
    expected = survey_event(small_survey(), notes=colours.reports[-1].notes)["record"]["notes"]
    assert records(after)["survey/colours"]["notes"] == expected != []


def test_an_error_that_nobody_expected_costs_one_record(colours: Collected) -> None:
    def adjust(report: Any) -> Any:
        if report.windows[0].last == 0:
            raise KeyError("a bug")
        return report

    made = Making(frozenset(), survey_event, adjust)
    results, _ = made.apply(Come([small_survey()], colours.messages))
    assert [one.key for one in results if "mobility" in one.key] == ["mobility/colours/1", "mobility/colours/2"]
    assert records(made.statuses(None, False))["status"]["unread"] == ["mobility, colours/0"]


def test_a_final_that_changed_is_named_and_the_first_one_stays(colours: Collected) -> None:
    (changed,) = HISTOGRAMS.messages(FinalKey("colours", 0), colours.finals[0].model_copy(update={"n": 61}))
    made = making()
    made.apply(Come([small_survey()], [*colours.messages, (0, 99, changed)]))
    shown = records(made.statuses(None, False))
    assert shown["status"]["unread"] == ["histograms, colours/0"]
    assert [period["n"] for period in shown["status/colours"]["periods"]] == [60] * 3


def test_records_of_any_bytes_are_named() -> None:
    rubbish = [
        Output(HISTOGRAMS.name, key, value) for key in (b"", b"\xff/1", b"a/b/3") for value in (b"", b"\x1f\x8b")
    ]
    made = making()
    assert made.apply(come(rubbish, small_survey()))[0] == []
    assert len(records(made.statuses(None, False))["status"]["unread"]) == len(rubbish)


def test_large_results_are_joined_from_their_pieces(tmp_path: Path) -> None:
    with collecting(tmp_path, small_survey(values=[f"value {number}" for number in range(40)])) as (colours,):
        colours.finish([30] * 40)
        (report,) = Results(colours.store).mobility("colours")
    cut = MOBILITY.messages(FinalKey("colours", 0), report, limit=200)
    assert len(cut) > 3
    results, _ = making().apply(come(cut, small_survey()))
    ((key, *_, segment),) = results
    shown = json.loads(text_of(segment).removeprefix(b"data: "))["record"]["windows"][0]
    shares = report.windows[0].attributes[0].values
    assert key == "mobility/colours/0" and shares is not None
    assert shown["attributes"][0]["values"]["share"]["value"] == shares.share.value.tolist()
    assert making().apply(come(cut[1:], small_survey()))[0] == [], "a piece is missing"


def test_verdicts_on_integrity_are_counted_and_alarms_are_named(colours: Collected) -> None:
    status = SurveyStatus()
    for final, verdict in zip(colours.finals, ("consistent", "consistent", "contradicted"), strict=True):
        assert final.integrity is not None
        judged = final.model_copy(update={"integrity": final.integrity.model_copy(update={"verdict": verdict})})
        status.note(judged)
    shown = status.record(None)
    assert shown["integrity"] == {"consistent": 2, "contradicted": 1}
    assert [(alarm["period"], alarm["verdict"]) for alarm in shown["alarms"]] == [(2, "contradicted")]


def test_reports_that_are_lost_in_any_of_some_periods_are_lost_once() -> None:
    status, lost = SurveyStatus(), (Loss(0, 2, 260), Loss(5, 5, 3))
    live = Live(survey="colours", closed_through=4, open=(), rejects={}, lates={}, lost=lost)
    status.note(live)
    assert status.record(None)["lost"] == 263
