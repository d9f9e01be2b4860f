"""Refused reports are listed, and sent again when their survey is published: each is counted once."""

import json

import pytest
from typer.testing import CliRunner, Result

from hearsay.cli import app
from protocols.errors import SettingsError, SurveyError
from tests.helpers.counting import NewCounting
from tests.helpers.eventually import eventually
from tests.stream_app.worlds import SCHEME, Reports, Row, Tick


def crowd(period: int, size: int) -> Reports:
    return Reports(period, tuple(Row(token, token % 3 + 1, token % 3, token) for token in range(1, size + 1)))


def deadletters(*words: str) -> Result:
    return CliRunner().invoke(app, ["deadletters", *words])


def resubmit() -> Result:
    return deadletters("resubmit", "--reason", "unknown-survey", "--json")


def test_reports_sent_before_their_survey_was_published_are_sent_again_and_counted_once(
    new_counting: NewCounting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failure would look like: a report lost or counted twice, a final that changes, or a success that was none."""
    counting = new_counting(partitions=3, merge_partitions=2)
    monkeypatch.setenv("HEARSAY_KAFKA_BOOTSTRAP", counting.kafka.bootstrap)
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", counting.topics.prefix)
    assert deadletters("list").stdout == "There are no dead letters.\n"

    with counting.workers():
        counting.send([crowd(0, 200), Tick(0), crowd(1, 100), crowd(2, 50)])
        eventually(lambda: sum(g["records"] for g in json.loads(deadletters("list", "--json").stdout)) == 12)
        (group,) = json.loads(deadletters("list", "--reason", "unknown-survey", "--json").stdout)
        assert (group["survey"], group["rows"], group["resubmitted"]) == ("s", 350, 0)
        assert "hearsay deadletters resubmit --reason unknown-survey" in deadletters("list").output
        refused = resubmit().exception
        assert isinstance(refused, SurveyError) and "no survey s is published" in refused.message

        counting.publish(SCHEME)
        with monkeypatch.context() as killed:  # as if it had been killed before it noted what it sent
            killed.setattr("stream_app.kafka.noted", lambda keys: b"[]")
            first = json.loads(resubmit().stdout)
        assert (first["rows"], first["clocks"], first["kept"]) == (350, 3, {})
        eventually(lambda: counting.counted() == [200])
        second = resubmit()
        assert second.exit_code == 0
        found = json.loads(second.stdout)
        assert (found["rows"], found["clocks"], found["kept"]) == (150, 0, {"late": 200})
        third = deadletters("resubmit", "--reason", "unknown-survey")
        assert third.exit_code == 1
        assert "Not sent: 200 reports, because their period is closed" in third.output
        assert json.loads(deadletters("list", "--json").stdout)[0]["resubmitted"] == 6

        counting.send([Tick(2)])
        eventually(lambda: counting.counted() == [200, 100, 50])


def test_what_would_be_refused_for_ever_is_not_sent_again() -> None:
    refused = deadletters("resubmit", "--reason", "bad-value").exception
    assert isinstance(refused, SettingsError) and "unknown-survey and too-far-ahead" in refused.hint
    assert "not one of" in deadletters("list", "--reason", "unknown").output
