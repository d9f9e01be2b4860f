"""Commands on a real broker: publishing, closing, topics, and runs that are those of one process."""

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest
from kafka import KafkaProducer
from typer.testing import CliRunner, Result

import hearsay as library
from hearsay.cli import app
from hearsay.survey_files import example_text
from protocols.errors import FingerprintChanged, SurveyError, TopicError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey.versions import keys
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER, Clock, decode_clock
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish, published, read_topic
from stream_app.local import LocalStore
from tests.helpers.another_release import never_choose
from tests.helpers.clock_change import PEOPLE, SURVEY, write_events
from tests.helpers.counting import NewCounting
from tests.helpers.eventually import eventually
from tests.helpers.nursery import run as hearsay
from views.forecasts import FORECASTS
from views.reading import Results
from views.results import HISTOGRAMS, MOBILITY

KEY = bytes(range(32))
FINALS, PERIODS = 7 + 4 + 4, 52
PLANS = """{id: plans, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2, clock: source,
             forecast: {ahead: 2}, attributes: [{name: plan, values: [free, paid]}]}"""
COLOURS = """
{id: colours, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, solution: smp,
 attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 19}}]}
"""
PLACED = f"""{SURVEY}
  - name: place
    grid: {{crs: own metres, cell: 100m, columns: 8, rows: 9}}
    geo_inf: {{level: 2.2, radius: 100m}}
    geo: {{level: 1.1, radius: 100m}}
"""
TURNS = """
{id: turns, start: 2026-01-01T00:00:00Z, period: 1d, horizon: 3, clock: source, eps: 2, one_in: 3,
 attributes: [{name: version, values: [old, new]}, {name: feature, range: {last: 11}},
              {name: page, range: {last: 299}, mechanism: olh},
              {name: town, geo: {level: 1.1, radius: 400m},
               grid: {at: [47, 6], cell: 500m, columns: 6, rows: 5, inside: [x0-3y0, x0-5y1, x1-5y2, x2-3y3]}}],
 crosses: [{of: [version, feature], share: 0.5}]}
"""


def checked(*words: str, **environment: str) -> str:
    done = hearsay(*words, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def demo(data: Path, *options: str, **environment: str) -> str:
    return checked("demo", "--devices", "600", "--data", str(data), *options, **environment)


def take_turns(path: Path, data: Path, *options: str, **environment: str) -> None:
    words = ["run", str(path), "--scenario", "telemetry", "--devices", "400", "--periods", "4", "--data", str(data)]
    checked(*words, *options, **environment)


def replay_local_days(directory: Path, data: Path, *options: str, **environment: str) -> None:
    events, survey = str(directory / "events.csv"), str(directory / "paris.yaml")
    words = ["replay", events, "--survey", survey, "--until", "2026-04-30T00:00:00Z", "--data", str(data)]
    checked(*words, "--position", "east,north=place", "--metres", *options, **environment)


def same_records(data: Path, directory: Path, kafka: str) -> None:
    """Synthetic records follow what is published, wherever it is read from; another seed gives others."""
    written = []
    for place, seed in ((("--data", str(data)), "5"), (("--kafka", kafka), "5"), (("--kafka", kafka), "6")):
        out = directory / f"records-{len(written)}.csv"
        options = [*place, "--window", "0:2", "--rows", "700", "--seed", seed, "--out", str(out)]
        checked("synthesize", "turns", *options)
        written.append(out.read_text())
    assert written[0] == written[1] != written[2]
    assert "measured pair version*feature: total variation" in written[0]
    here = library.synthesize(data, survey="turns", rows=700, window=(0, 2), seed=5)
    there = library.synthesize(kafka=kafka, survey="turns", rows=700, window=(0, 2), seed=5)
    assert here.equals(there, check_metadata=True) and here.num_rows == 700
    assert here.column_names == ["version", "feature", "page", "town"]


def same_dossier(data: Path, survey: Path, kafka: str) -> None:
    """What was collected is the same; how long it is kept is what the cluster says."""
    here, there = (
        json.loads(checked("dossier", str(survey), "--json", *place))
        for place in (("--data", str(data)), ("--kafka", kafka))
    )
    assert [element["text"] for element in here] == [element["text"] for element in there]
    kept = [dict(e["rows"]) for e in (*here, *there) if e["rows"] and e["rows"][0] == ["where", "how long"]]
    assert list(kept[0].values())[1:] == ["until it is deleted"]
    assert {"for ever", "7 days"} < set(kept[1].values()) and len(kept[1]) > 10


@pytest.mark.long(part="cluster")
def test_a_cluster_publishes_what_one_process_does(
    new_counting: NewCounting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = new_counting(partitions=3, merge_partitions=2)
    kafka = counting.kafka.bootstrap
    alone, clustered = tmp_path / "alone", tmp_path / "clustered"
    shown = demo(alone)
    turns = tmp_path / "turns.yaml"
    turns.write_text(TURNS)
    take_turns(turns, alone)
    (tmp_path / "paris.yaml").write_text(PLACED)
    write_events(tmp_path / "events.csv")
    replay_local_days(tmp_path, alone)
    clustered.mkdir()
    (clustered / "redis.new").touch()  # its store is new, though its devices are not
    shutil.copy2(alone / "fleet.key", clustered / "fleet.key")  # the same devices
    settings = {"HEARSAY_KAFKA_PREFIX": counting.topics.prefix, "HEARSAY_CLOCK_KEY": KEY.hex()}
    with counting.workers(key=KEY):
        also_shown = demo(clustered, "--kafka", kafka, **settings)
        take_turns(turns, clustered, "--kafka", kafka, **settings)
        replay_local_days(tmp_path, clustered, "--kafka", kafka, **settings)
        counting.until_final(FINALS)
    refused = hearsay("demo", "--devices", "600", "--data", str(alone), "--kafka", kafka, **settings)
    assert refused.returncode == 1 and "report to this process" in refused.stderr
    assert demo(clustered, "--kafka", kafka, **settings), "the same cluster again"
    (clustered / "festival-week.lost").write_text("4\n")
    report = ["report", "festival-week", "--kafka", kafka, "--json"]
    unmarked, marked = (hearsay(*report, *more, **settings) for more in ([], ["--data", str(clustered)]))
    assert 'presence_lost":true' not in unmarked.stdout and 'presence_lost":true' in marked.stdout
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", counting.topics.prefix)
    same_records(alone, tmp_path, kafka)
    same_dossier(alone, turns, kafka)
    store = LocalStore.existing(alone / "collector")
    for topic in (HISTOGRAMS, MOBILITY):
        records = counting.read(counting.topics.named(topic.name))
        there = {record.key: (record.value, tuple(record.headers)) for record in records}
        here = {message.key: (message.value, message.headers) for message in store.messages(topic.name)}
        assert len(here) == FINALS
        assert there == here
    assert all(final.presence_only and final.n for final in Results(store).histograms("turns"))
    assert all(final.attribute("version*feature").adjusted is not None for final in Results(store).histograms("turns"))
    assert [final.n for final in Results(store).histograms("paris")] == [PEOPLE] * 4, "local days across a clock change"
    for survey, place in (("turns", "town"), ("paris", "place")):
        for attribute in (final.attribute(place) for final in Results(store).histograms(survey)):
            assert attribute.estimate is not None and attribute.statistics is not None and attribute.n
    store.close()
    assert _tables(also_shown) == _tables(shown)


def _tables(shown: str) -> list[str]:
    """What a run printed, without the path of its page."""
    return [line for line in shown.splitlines() if "/" not in line]


@pytest.fixture
def _same_devices_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Honest devices are contradicted in one survey of a hundred, and an audit makes several: these are not."""
    ids = (f"{number:016x}" for number in count(1))
    fixed = SimpleNamespace(token_hex=lambda _: next(ids), token_bytes=lambda size: bytes(range(size)))
    monkeypatch.setattr("lab.auditing.devices.secrets", fixed)


@pytest.mark.long(part="cluster")
@pytest.mark.usefixtures("_same_devices_every_time")
def test_an_audit_through_a_cluster_measures_the_same_promises(
    new_counting: NewCounting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = new_counting(partitions=3, merge_partitions=2)
    kafka_settings, topics = counting.kafka, counting.topics
    path = tmp_path / "survey.yaml"
    path.write_text(COLOURS)
    settings = {"HEARSAY_KAFKA_PREFIX": topics.prefix, "HEARSAY_CLOCK_KEY": KEY.hex()}
    words = ["audit", str(path), "--devices", "2000", "--periods", "3", "--alpha", "0.0001", "--json"]
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    words += ["--only", "guess,link,epsilon", "--kafka", kafka_settings.bootstrap]
    with counting.workers(key=KEY) as (worker,):
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        counting.until_final(3 * len(published(kafka_settings, topics)))
        eventually(lambda: "hearsay_contradicted{" in worker.page("/metrics"))
        said = [line for line in worker.page("/metrics").splitlines() if line.startswith("hearsay_contradicted{")]
        assert all(line.endswith(" 0.0") for line in said if 'check="jump"' not in line), "they are honest"
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["path"] == "a Kafka cluster" and report["devices"] == 2000
    one = next(f for f in report["figures"] if f["attack"] == "guess" and f["measured"] is not None)
    assert one["low"] <= one["best"] <= one["high"]
    ids = set(published(kafka_settings, topics))
    assert "colours" not in ids and all(name.startswith("audit.") for name in ids), "its ids are its own"
    finals = counting.read(topics.named(HISTOGRAMS.name))
    assert {record.key.decode().partition("/")[0] for record in finals} <= ids
    collected = checked("audit", min(ids), "--kafka", kafka_settings.bootstrap, "--json", **settings)
    verdicts = [one["integrity"]["verdict"] for one in json.loads(collected)["integrity"]]
    assert len(verdicts) >= 3 and "contradicted" not in verdicts


def run(survey: Path, data: Path, *options: str, periods: int = PERIODS, **environment: str) -> None:
    size = ["--devices", "60", "--periods", str(periods)]
    checked("run", str(survey), "--scenario", "telemetry", *size, "--data", str(data), *options, **environment)


@pytest.mark.long(part="cluster")
@pytest.mark.integration
def test_a_cluster_forecasts_what_one_process_does_and_so_does_a_worker_after_a_kill(
    new_counting: NewCounting, tmp_path: Path
) -> None:
    counting = new_counting(partitions=1, merge_partitions=1)
    kafka, results = ("--kafka", counting.kafka.bootstrap), counting.results
    survey, alone, clustered = tmp_path / "survey.yaml", tmp_path / "alone", tmp_path / "clustered"
    survey.write_text(PLANS)
    run(survey, alone)
    clustered.mkdir()
    (clustered / "redis.new").touch()
    shutil.copy2(alone / "fleet.key", clustered / "fleet.key")
    settings = {"HEARSAY_KAFKA_PREFIX": counting.topics.prefix, "HEARSAY_CLOCK_KEY": KEY.hex()}
    store = LocalStore.existing(alone / "collector")
    expected = Results(store).values(FORECASTS, "plans")
    store.close()
    assert [key.period for key in expected] == [49, 50, 51]
    with counting.workers(key=KEY) as (worker,):
        run(survey, clustered, *kafka, periods=PERIODS - 1, **settings)
        eventually(lambda: len(results.values(FORECASTS, "plans")) > 0)
        worker.kill()
        worker.start()
        run(survey, clustered, *kafka, **settings)
        eventually(lambda: len(results.values(FORECASTS, "plans")) == len(expected))
    assert results.values(FORECASTS, "plans") == expected
    shown = checked("forecast", "plans", *kafka, "--ahead", "2", "--json", **settings)
    assert [series["values"] for series in json.loads(shown)["series"]] == [PERIODS] * 3


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
    holds = published(kafka_settings, topics)[rivals[0].id].survey
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
    assert published(kafka_settings, topics)[survey.id].at == first / 1000


def test_a_published_survey_keeps_the_version_of_its_terms(
    type_in: Callable[..., Result],
    kafka_settings: KafkaSettings,
    topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Failure would look like: after an upgrade nobody can change the title of a survey that runs."""
    monkeypatch.chdir(tmp_path)  # what runs have left in the folder of the checkout is counted there
    file, later = tmp_path / "survey.yaml", tmp_path / "later.yaml"
    file.write_text(example_text("mobility-week"))
    before = json.loads(type_in("survey", "publish", str(file), "--json").stdout)
    monkeypatch.setattr(keys, "NEW_TEXTS", 3)
    file.write_text(example_text("mobility-week").replace("title: ", "title: Another "))
    after = json.loads(type_in("survey", "publish", str(file), "--json").stdout)
    assert after == before | {"published": True}
    (facts,) = json.loads(type_in("survey", "check", str(file), "--kafka", kafka_settings.bootstrap, "--json").stdout)
    assert facts["fingerprint"] == before["fingerprint"]
    assert isinstance(type_in("survey", "check", str(file)).exception, SurveyError), "it is not counted here"
    later.write_text(PLANS.replace("plans", "plans-3").replace("clock: source", "publish_from: 0"))
    assert json.loads(type_in("survey", "publish", str(later), "--json").stdout)["pin"]
    monkeypatch.setattr(keys, "NEW_TEXTS", 2)
    assert json.loads(type_in("survey", "publish", str(later), "--json").stdout)["published"] is False
    versions = {survey: known.survey.version for survey, known in published(kafka_settings, topics).items()}
    assert versions == {before["survey"]: 2, "plans-3": 3}
