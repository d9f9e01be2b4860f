"""The same run in one process and on a cluster: the same results, to the byte."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import hearsay as library
from lab.worker_process import workers
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, read_topic
from stream_app.local import LocalStore
from tests.helpers.clock_change import PEOPLE, SURVEY, write_events
from tests.helpers.eventually import eventually
from tests.helpers.nursery import run as hearsay
from tests.helpers.published import read_finals
from views.reading import Results
from views.results import HISTOGRAMS, MOBILITY

KEY = bytes(range(32))
FINALS = 7 + 4 + 4


def call(data: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return hearsay("demo", "--devices", "600", "--data", str(data), *options, **environment)


def demo(data: Path, *options: str, **environment: str) -> str:
    done = call(data, *options, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


TURNS = """
{id: turns, start: 2026-01-01T00:00:00Z, period: 1d, horizon: 3, clock: source, eps: 2, one_in: 3,
 attributes: [{name: version, values: [old, new]}, {name: feature, range: {last: 11}},
              {name: page, range: {last: 299}, mechanism: olh},
              {name: town, geo: {level: 1.1, radius: 400m},
               grid: {at: [47, 6], cell: 500m, columns: 6, rows: 5, inside: [x0-3y0, x0-5y1, x1-5y2, x2-3y3]}}],
 crosses: [{of: [version, feature], share: 0.5}]}
"""
PLACED = f"""{SURVEY}
  - name: place
    grid: {{crs: own metres, cell: 100m, columns: 8, rows: 9}}
    geo_inf: {{level: 2.2, radius: 100m}}
    geo: {{level: 1.1, radius: 100m}}
"""


def take_turns(path: Path, data: Path, *options: str, **environment: str) -> None:
    words = ["run", str(path), "--scenario", "telemetry", "--devices", "400", "--periods", "4", "--data", str(data)]
    done = hearsay(*words, *options, **environment)
    assert done.returncode == 0, done.stderr


def replay_local_days(directory: Path, data: Path, *options: str, **environment: str) -> None:
    words = [
        str(directory / "events.csv"),
        "--survey",
        str(directory / "paris.yaml"),
        "--until",
        "2026-04-30T00:00:00Z",
        "--position",
        "east,north=place",
        "--metres",
    ]
    done = hearsay("replay", *words, "--data", str(data), *options, **environment)
    assert done.returncode == 0, done.stderr


def same_records(data: Path, directory: Path, kafka: str) -> None:
    """Synthetic records follow what is published, wherever it is read from; another seed gives others."""
    written = []
    for place, seed in ((("--data", str(data)), "5"), (("--kafka", kafka), "5"), (("--kafka", kafka), "6")):
        out = directory / f"records-{len(written)}.csv"
        options = [*place, "--window", "0:2", "--rows", "700", "--seed", seed, "--out", str(out)]
        done = hearsay("synthesize", "turns", *options)
        assert done.returncode == 0, done.stderr
        written.append(out.read_text())
    assert written[0] == written[1] != written[2]
    assert "measured pair version*feature: total variation" in written[0]
    here = library.synthesize(data, survey="turns", rows=700, window=(0, 2), seed=5)
    there = library.synthesize(kafka=kafka, survey="turns", rows=700, window=(0, 2), seed=5)
    assert here.equals(there, check_metadata=True) and here.num_rows == 700
    assert here.column_names == ["version", "feature", "page", "town"]


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
    refused = call(alone, "--kafka", kafka_settings.bootstrap, **settings)
    assert refused.returncode == 1 and "report to this process" in refused.stderr
    assert demo(clustered, "--kafka", kafka_settings.bootstrap, **settings), "the same cluster again"
    (clustered / "festival-week.lost").write_text("4\n")
    report = ["report", "festival-week", "--kafka", kafka_settings.bootstrap, "--json"]
    unmarked, marked = (hearsay(*report, *more, **settings) for more in ([], ["--data", str(clustered)]))
    assert 'presence_lost":true' not in unmarked.stdout and 'presence_lost":true' in marked.stdout
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", topics.prefix)
    same_records(alone, tmp_path, kafka_settings.bootstrap)
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
