"""Refused reports are listed, and sent again when their survey is published: each is counted once."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bench._processes import workers
from hearsay.cli import app
from protocols.errors import SettingsError, SurveyError
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, Topics, publish
from tests.helpers.eventually import eventually
from tests.helpers.workers import send
from tests.stream_app.worlds import KEY, SCHEME, Reports, Row, Tick
from views.reading import Results


def crowd(period: int, size: int) -> Reports:
    return Reports(period, tuple(Row(token, token % 3 + 1, token % 3, token) for token in range(1, size + 1)))


def deadletters(*words: str) -> Result:
    return CliRunner().invoke(app, ["deadletters", *words])


def resubmit() -> Result:
    return deadletters("resubmit", "--reason", "unknown-survey", "--json")


def test_reports_sent_before_their_survey_was_published_are_sent_again_and_counted_once(
    kafka_settings: KafkaSettings,
    fresh_topics: Callable[..., Topics],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Failure would look like: a report lost or counted twice, a final that changes, or a success that was none."""
    topics = fresh_topics(partitions=3, merge_partitions=2)
    monkeypatch.setenv("HEARSAY_KAFKA_BOOTSTRAP", kafka_settings.bootstrap)
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", topics.prefix)
    assert deadletters("list").stdout == "There are no dead letters.\n"

    def finals() -> dict[int, int]:
        return {final.period: final.n for final in Results(KafkaMessages(kafka_settings, topics)).histograms("s")}

    with workers(1, kafka_settings, topics, KEY, tmp_path):
        send(kafka_settings, topics, [crowd(0, 200), Tick(0), crowd(1, 100), crowd(2, 50)])
        eventually(lambda: sum(g["records"] for g in json.loads(deadletters("list", "--json").stdout)) == 12)
        (group,) = json.loads(deadletters("list", "--reason", "unknown-survey", "--json").stdout)
        assert (group["survey"], group["rows"], group["resubmitted"]) == ("s", 350, 0)
        assert "hearsay deadletters resubmit --reason unknown-survey" in deadletters("list").output
        refused = resubmit().exception
        assert isinstance(refused, SurveyError) and "no survey s is published" in refused.message

        publish(kafka_settings, topics, SCHEME.survey)
        with monkeypatch.context() as killed:  # as if it had been killed before it noted what it sent
            killed.setattr("hearsay.commands.operations.resubmitting.noted", lambda keys: b"[]")
            first = json.loads(resubmit().stdout)
        assert (first["rows"], first["clocks"], first["kept"]) == (350, 3, {})
        eventually(lambda: finals() == {0: 200})
        second = resubmit()
        assert second.exit_code == 0
        found = json.loads(second.stdout)
        assert (found["rows"], found["clocks"], found["kept"]) == (150, 0, {"late": 200})
        third = deadletters("resubmit", "--reason", "unknown-survey")
        assert third.exit_code == 1
        assert "Not sent: 200 reports, because their period is closed" in third.output
        assert json.loads(deadletters("list", "--json").stdout)[0]["resubmitted"] == 6

        send(kafka_settings, topics, [Tick(2)])
        eventually(lambda: finals() == {0: 200, 1: 100, 2: 50})


def test_what_would_be_refused_for_ever_is_not_sent_again() -> None:
    refused = deadletters("resubmit", "--reason", "bad-value").exception
    assert isinstance(refused, SettingsError) and "unknown-survey and too-far-ahead" in refused.hint
    assert "not one of" in deadletters("list", "--reason", "unknown").output
