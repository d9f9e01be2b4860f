"""The same run, audit and forecasts in one process and on a cluster: the same results, to the byte."""

import json
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import hearsay as library
from bench._processes import workers
from hearsay.cli import app
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, Topics, published, read_topic
from stream_app.local import LocalStore
from tests.helpers.clock_change import PEOPLE, SURVEY, write_events
from tests.helpers.eventually import eventually
from tests.helpers.nursery import run as hearsay
from tests.helpers.published import read_finals
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
    kafka_settings: KafkaSettings,
    fresh_topics: Callable[..., Topics],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = fresh_topics(partitions=3, merge_partitions=2)
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
    settings = {"HEARSAY_KAFKA_PREFIX": topics.prefix, "HEARSAY_CLOCK_KEY": KEY.hex()}
    with workers(1, kafka_settings, topics, KEY, tmp_path):
        also_shown = demo(clustered, "--kafka", kafka_settings.bootstrap, **settings)
        take_turns(turns, clustered, "--kafka", kafka_settings.bootstrap, **settings)
        replay_local_days(tmp_path, clustered, "--kafka", kafka_settings.bootstrap, **settings)
        eventually(lambda: len(read_finals(kafka_settings, topics)) == FINALS)
    refused = hearsay("demo", "--devices", "600", "--data", str(alone), "--kafka", kafka_settings.bootstrap, **settings)
    assert refused.returncode == 1 and "report to this process" in refused.stderr
    assert demo(clustered, "--kafka", kafka_settings.bootstrap, **settings), "the same cluster again"
    (clustered / "festival-week.lost").write_text("4\n")
    report = ["report", "festival-week", "--kafka", kafka_settings.bootstrap, "--json"]
    unmarked, marked = (hearsay(*report, *more, **settings) for more in ([], ["--data", str(clustered)]))
    assert 'presence_lost":true' not in unmarked.stdout and 'presence_lost":true' in marked.stdout
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", topics.prefix)
    same_records(alone, tmp_path, kafka_settings.bootstrap)
    same_dossier(alone, turns, kafka_settings.bootstrap)
    store = LocalStore.existing(alone / "collector")
    for topic in (HISTOGRAMS, MOBILITY):
        records = read_topic(kafka_settings, topics.named(topic.name))
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
    kafka_settings: KafkaSettings,
    fresh_topics: Callable[..., Topics],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = fresh_topics(partitions=3, merge_partitions=2)
    path = tmp_path / "survey.yaml"
    path.write_text(COLOURS)
    settings = {"HEARSAY_KAFKA_PREFIX": topics.prefix, "HEARSAY_CLOCK_KEY": KEY.hex()}
    words = ["audit", str(path), "--devices", "2000", "--periods", "3", "--alpha", "0.0001", "--json"]
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    words += ["--only", "guess,link,epsilon", "--kafka", kafka_settings.bootstrap]
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        eventually(lambda: len(read_finals(kafka_settings, topics)) >= 3 * len(published(kafka_settings, topics)))
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
    finals = read_topic(kafka_settings, topics.named(HISTOGRAMS.name))
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
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    topics = fresh_topics(partitions=1, merge_partitions=1)
    survey, alone, clustered = tmp_path / "survey.yaml", tmp_path / "alone", tmp_path / "clustered"
    survey.write_text(PLANS)
    run(survey, alone)
    clustered.mkdir()
    (clustered / "redis.new").touch()
    shutil.copy2(alone / "fleet.key", clustered / "fleet.key")
    settings = {"HEARSAY_KAFKA_PREFIX": topics.prefix, "HEARSAY_CLOCK_KEY": KEY.hex()}
    store, results = LocalStore.existing(alone / "collector"), Results(KafkaMessages(kafka_settings, topics))
    expected = Results(store).values(FORECASTS, "plans")
    store.close()
    assert [key.period for key in expected] == [49, 50, 51]
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        run(survey, clustered, "--kafka", kafka_settings.bootstrap, periods=PERIODS - 1, **settings)
        eventually(lambda: len(results.values(FORECASTS, "plans")) > 0)
        worker.kill()
        worker.start()
        run(survey, clustered, "--kafka", kafka_settings.bootstrap, **settings)
        eventually(lambda: len(results.values(FORECASTS, "plans")) == len(expected))
    assert results.values(FORECASTS, "plans") == expected
    shown = checked("forecast", "plans", "--kafka", kafka_settings.bootstrap, "--ahead", "2", "--json", **settings)
    assert [series["values"] for series in json.loads(shown)["series"]] == [PERIODS] * 3
