"""The example of a device in another language: its reports are counted like everybody's."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from types import ModuleType

import pytest

from producers.sinks import KafkaSink, Sink
from protocols.scheme import Scheme
from protocols.wire import REPORT, Frame, decode_report
from servers.settings import KafkaSettings
from stream_app.kafka import Topics
from tests.helpers.node import node
from tests.helpers.sinks import KeepingSink
from tests.helpers.topics import read_topic
from tests.producers.populations import scheme

EXAMPLE = Path(__file__).parents[2] / "examples" / "foreign-client"
SURVEY = scheme()


def gateway() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gateway", EXAMPLE / "gateway.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def serving(sink: Sink, survey: Scheme = SURVEY) -> Iterator[str]:
    """The address of a running gateway to a sink."""
    with gateway().serve(survey, sink, port=0) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(timeout=60)


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs the client on a day; what it says."""

    def run(address: str, state: Path, day: int, *answers: str) -> str:
        monkeypatch.setitem(os.environ, "NOW", f"2026-01-{day + 1:02d}T12:00:00Z")
        said = node(EXAMPLE / "client.mjs", address, "buttons", state, *answers)
        return (said.stdout + said.stderr).strip()

    return run


def test_reports_of_a_foreign_client_are_good_reports(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path, report: Callable[..., str]
) -> None:
    topic = fresh_topics(partitions=3).reports
    with closing(KafkaSink(kafka_settings, topic)) as sink, serving(sink) as address:
        for device in range(3):
            state = tmp_path / str(device)
            assert report(address, state, 0, "colour=blue", "plan=paid") == "period 0 is reported"
            assert "period 0 is reported" in report(address, state, 0, "colour=red", "plan=free")
            assert report(address, state, 4, "colour=blue", "plan=paid") == "period 4 is reported"
    records = read_topic(kafka_settings, topic)
    assert len(records) == 6
    frames = []
    for partition, content_type, value in records:
        frame = decode_report(value, {SURVEY.survey.id: SURVEY}.get)
        assert isinstance(frame, Frame), frame
        assert content_type == REPORT
        assert int(frame.tokens[0]) % 3 == partition
        frames.append(frame)
    assert len({int(frame.tokens[0]) for frame in frames}) == 6
    assert sorted((frame.period, int(frame.gaps[0])) for frame in frames) == [(0, 7)] * 3 + [(4, 4)] * 3


def test_a_report_that_was_not_delivered_is_sent_again_as_it_was(tmp_path: Path, report: Callable[..., str]) -> None:
    sink, state = KeepingSink(fail_after=0), tmp_path / "state"
    with serving(sink) as address:
        assert "status 503" in report(address, state, 0, "colour=blue", "plan=paid")
        sink.fail_after = None
        assert "the report says" in report(address, state, 0, "colour=red", "plan=free", "--show")
        assert report(address, state, 0, "colour=red", "plan=free") == "period 0 is reported"
    assert len(sink.records) == 2
    assert sink.records[0] == sink.records[1]


def test_a_client_answers_under_the_terms_of_its_first_use_only(tmp_path: Path, report: Callable[..., str]) -> None:
    sink, state = KeepingSink(), tmp_path / "state"
    with serving(sink) as address:
        assert report(address, state, 0, "colour=blue", "plan=paid") == "period 0 is reported"
    with serving(sink, scheme(budgets="eps_inf: 2, eps_1: 0.9, clock: source")) as address:
        assert "wrong-fingerprint" in report(address, state, 1, "colour=blue", "plan=paid")
    with serving(sink, scheme(budgets="eps_inf: 20, eps_1: 19, clock: source")) as address:
        assert "more than the limit of 2" in report(address, tmp_path / "new", 1, "colour=blue", "plan=paid")
    assert len(sink.records) == 1
