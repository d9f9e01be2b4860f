"""`survey publish`, `close` and `topics` on a real broker, under a prefix of the settings."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import pytest
from kafka import KafkaProducer
from typer.testing import CliRunner, Result

from hearsay.cli import app
from hearsay.survey_files import example_text
from protocols.errors import FingerprintChanged, SurveyError, TopicError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER, Clock, decode_clock
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish, published, read_topic, records
from tests.helpers.another_release import never_choose

KEY = bytes(range(32))


@pytest.fixture
def topics(fresh_topics: Callable[..., Topics]) -> Topics:
    return fresh_topics(partitions=3, merge_partitions=1)


@pytest.fixture
def type_in(kafka_settings: KafkaSettings, topics: Topics, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("HEARSAY_KAFKA_BOOTSTRAP", kafka_settings.bootstrap)
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", topics.prefix)
    monkeypatch.setenv("HEARSAY_CLOCK_KEY", KEY.hex())
    return lambda *words: CliRunner().invoke(app, list(words))


def test_terms_that_are_published_do_not_change(type_in: Callable[..., Result], tmp_path: Path) -> None:
    file = tmp_path / "survey.yaml"
    file.write_text(example_text("mobility-week"))
    assert json.loads(type_in("survey", "publish", str(file), "--json").stdout)["published"] is True
    assert json.loads(type_in("survey", "publish", str(file), "--json").stdout)["published"] is False
    file.write_text(example_text("mobility-week").replace("horizon: 7", "horizon: 6"))
    assert isinstance(type_in("survey", "publish", str(file)).exception, FingerprintChanged)


def test_a_release_that_resolves_a_published_survey_to_other_terms_cannot_publish_it(
    kafka_settings: KafkaSettings, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = parse_survey(example_text("mobility-week"))
    assert publish(kafka_settings, topics, survey)
    assert not publish(kafka_settings, topics, survey)
    never_choose(monkeypatch, Scheme(survey).questions[0].label)
    for again in (survey, survey.model_copy(update={"title": "Another title"})):
        with pytest.raises(FingerprintChanged) as refused:
            publish(kafka_settings, topics, again)
        assert "if its file is unchanged, another release" in refused.value.hint
    assert len(list(read_topic(kafka_settings, topics.surveys))) == 1


@pytest.mark.parametrize("horizon", [6, 7])
def test_of_two_who_publish_at_the_same_moment_the_first_terms_and_their_time_stay(
    horizon: int, kafka_settings: KafkaSettings, topics: Topics
) -> None:
    """The example has horizon 7: whoever publishes the same at once is not refused."""
    text, start = example_text("mobility-week"), Barrier(2)
    rivals = [parse_survey(text), parse_survey(text.replace("horizon: 7", f"horizon: {horizon}"))]

    def attempt(survey: Survey) -> bool:
        start.wait(timeout=60)
        try:
            return publish(kafka_settings, topics, survey)
        except FingerprintChanged:
            return False

    with ThreadPoolExecutor(2) as pool:
        done = sorted(pool.map(attempt, rivals))
    assert done[1] and (horizon == 7 or not done[0])
    written = list(read_topic(kafka_settings, topics.surveys))
    holds = published(kafka_settings, topics)[rivals[0].id]
    for record in (written[0], written[-1]):
        assert Survey.model_validate_json(record.value) == holds
        assert record.headers == [("fingerprint", Scheme(holds).fingerprint.encode())]
        assert record.timestamp == written[0].timestamp


@pytest.mark.parametrize("value", [b"{}", parse_survey(example_text("mobility-week")).model_dump_json().encode()])
def test_a_record_that_was_not_published_as_a_survey_is_named(
    value: bytes, kafka_settings: KafkaSettings, topics: Topics
) -> None:
    producer = KafkaProducer(**kafka_settings.client_options())
    producer.send(topics.surveys, value, key=b"s").get(timeout=30)
    producer.close()
    with pytest.raises(TopicError, match=f"record 0 of {topics.surveys} is not a survey"):
        published(kafka_settings, topics)


def test_closing_tells_every_partition(
    type_in: Callable[..., Result], kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    assert isinstance(type_in("close", "festival-week", "--through", "1").exception, SurveyError)
    file = tmp_path / "survey.yaml"
    file.write_text(example_text("mobility-week"))
    published = json.loads(type_in("survey", "publish", str(file), "--json").stdout)
    unasked = type_in("close", published["survey"], "--through", "1")
    assert unasked.exit_code == 2 and "--yes" in unasked.output
    assert not list(read_topic(kafka_settings, topics.reports))
    done = type_in("close", published["survey"], "--through", "1", "--yes", "--json")
    told = {"survey": published["survey"], "through": 1, "closed_before": -1, "partitions": 3}
    assert json.loads(done.stdout) == told
    records = list(read_topic(kafka_settings, topics.reports))
    assert sorted(record.partition for record in records) == [0, 1, 2]
    assert {dict(record.headers)[CONTENT_TYPE_HEADER] for record in records} == {CLOCK.encode()}
    assert {decode_clock(record.value, KEY) for record in records} == {Clock(published["survey"], 1)}


@pytest.mark.parametrize(("clock", "first_refused"), [("source", 2), ("wall", 1)])
def test_what_has_not_begun_is_not_closed(
    clock: str, first_refused: int, type_in: Callable[..., Result], tmp_path: Path
) -> None:
    file = tmp_path / "survey.yaml"
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    file.write_text(
        f"{{id: s, start: {today.isoformat()}, period: 52w, clock: {clock}, eps: 1,"
        " attributes: [{name: a, values: [x, y]}]}"
    )
    assert type_in("survey", "publish", str(file)).exit_code == 0
    for through in (first_refused, 999):
        refused = type_in("close", "s", "--through", str(through), "--yes").exception
        assert isinstance(refused, SurveyError)
        assert f"close through {first_refused - 1} at most" in refused.hint
    done = type_in("close", "s", "--through", str(first_refused - 1), "--yes")
    assert done.exit_code == 0
    assert "are being closed" in done.output, "workers close, not this command"
    assert type_in("close", "s", "--through", "20", "--yes", "--force").exit_code == 0


def test_topics_are_made_and_checked_under_the_prefix_of_the_settings(
    type_in: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other command looks for them there, and says `run hearsay topics create` if they are not."""
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", "second")
    made = json.loads(type_in("topics", "create", "--partitions", "1", "--json").stdout)["created"]
    assert "second.reports" in made and all(name.startswith("second") for name in made)
    assert type_in("topics", "check").exit_code == 0


def test_texts_that_change_keep_the_time_of_the_first_publication(
    kafka_settings: KafkaSettings, topics: Topics
) -> None:
    """Compaction removes the first record; gateways that have read it and those that have not derive the same keys."""
    survey = parse_survey(example_text("mobility-week"))
    before = time.time()
    assert publish(kafka_settings, topics, survey)
    assert publish(kafka_settings, topics, survey.model_copy(update={"title": "Another"}))
    first, second = (record.timestamp for record in read_topic(kafka_settings, topics.surveys))
    assert first == second and before - 1 <= first / 1000 <= time.time()
    assert records(kafka_settings, topics)[survey.id].at == first / 1000
