"""Forecasts of a worker: the same bytes as those of one process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.worker_process import workers
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, Topics
from stream_app.local import LocalStore
from tests.helpers import nursery
from tests.helpers.eventually import eventually
from views.forecasts import FORECASTS
from views.reading import Results

KEY, PERIODS = bytes(range(32)), 52
SURVEY = """{id: plans, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2, clock: source,
             forecast: {ahead: 2}, attributes: [{name: plan, values: [free, paid]}]}"""


def hearsay(*words: str, **environment: str) -> str:
    done = nursery.run(*words, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(survey: Path, data: Path, *options: str, periods: int = PERIODS, **environment: str) -> None:
    size = ["--devices", "60", "--periods", str(periods)]
    hearsay("run", str(survey), "--scenario", "telemetry", *size, "--data", str(data), *options, **environment)


@pytest.mark.long(part="cluster")
@pytest.mark.integration
def test_a_cluster_forecasts_what_one_process_does_and_so_does_a_worker_after_a_kill(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    topics = fresh_topics(partitions=1, merge_partitions=1)
    survey, alone, clustered = tmp_path / "survey.yaml", tmp_path / "alone", tmp_path / "clustered"
    survey.write_text(SURVEY)
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
    shown = hearsay("forecast", "plans", "--kafka", kafka_settings.bootstrap, "--ahead", "2", "--json", **settings)
    assert [series["values"] for series in json.loads(shown)["series"]] == [PERIODS] * 3
