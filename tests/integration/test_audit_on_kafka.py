"""The audit of the deployed path: reports written to the topic and read back, matched by tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from hearsay.cli import app
from lab.worker_process import workers
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, published, read_topic
from tests.helpers.eventually import eventually
from tests.helpers.nursery import run as hearsay
from tests.helpers.published import read_finals
from tests.integration.test_run_on_kafka import KEY
from views.results import HISTOGRAMS

SURVEY = """
{id: colours, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, solution: smp,
 attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 19}}]}
"""


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
    path.write_text(SURVEY)
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
    collected = hearsay("audit", min(ids), "--kafka", kafka_settings.bootstrap, "--json", **settings)
    assert collected.returncode == 0, collected.stderr
    verdicts = [one["integrity"]["verdict"] for one in json.loads(collected.stdout)["integrity"]]
    assert len(verdicts) >= 3 and "contradicted" not in verdicts
