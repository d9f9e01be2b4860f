"""The example client in another language: its reports are counted like everybody's."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from types import ModuleType

import pytest

from producers.sinks import KafkaSink, Sink
from protocols.errors import SurveyError
from protocols.scheme import Scheme
from protocols.wire import REPORT, Frame, decode_report
from servers.settings import KafkaSettings
from stream_app.kafka import Topics
from tests.helpers.sinks import KeepingSink
from tests.helpers.topics import read_topic
from tests.producers.populations import COLOURS, PLANS, scheme

EXAMPLE = Path(__file__).parents[2] / "examples" / "foreign-client"
SURVEY = scheme(budgets="eps_inf: 20, eps_1: 19, clock: source")

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="the example client runs on Node.js")


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


def report(address: str, state: Path, day: int, *answers: str) -> str:
    """Run the client on a day; what it says."""
    node = shutil.which("node")
    assert node is not None
    command = [node, EXAMPLE / "client.mjs", address, state, *answers]
    environment = {**os.environ, "NOW": f"2026-01-{day + 1:02d}T12:00:00Z"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return (run.stdout + run.stderr).strip()


@needs_node
def test_reports_of_a_foreign_client_are_good_reports(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    topic = fresh_topics(partitions=3).reports
    with closing(KafkaSink(kafka_settings, topic)) as sink, serving(sink) as address:
        for device in range(3):
            state = tmp_path / f"{device}.json"
            assert report(address, state, 0, "colour=blue", "plan=paid") == "reported"
            assert report(address, state, 0, "colour=red", "plan=free") == "this period is reported"
            assert report(address, state, 4, "colour=blue", "plan=paid") == "reported"
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
    # With budgets this large nearly every answer is the truth: a symbol put on the wire wrongly would show.
    truth = {"colour": COLOURS.index("blue"), "plan": PLANS.index("paid")}
    right = [int(column[0]) == truth[name] for frame in frames for name, column in frame.answers.items()]
    assert right.count(True) >= 5


@needs_node
def test_a_report_that_was_not_delivered_is_sent_again_as_it_was(tmp_path: Path) -> None:
    sink, state = KeepingSink(fail_after=0), tmp_path / "state.json"
    with serving(sink) as address:
        assert "not delivered (503)" in report(address, state, 0, "colour=blue", "plan=paid")
        sink.fail_after = None
        assert report(address, state, 0, "colour=red", "plan=free") == "reported"
    assert len(sink.records) == 2
    assert sink.records[0] == sink.records[1]


@needs_node
def test_a_client_does_not_answer_under_changed_terms(tmp_path: Path) -> None:
    sink, state = KeepingSink(), tmp_path / "state.json"
    with serving(sink) as address:
        assert report(address, state, 0, "colour=blue", "plan=paid") == "reported"
    with serving(sink, scheme(budgets="eps_inf: 20, eps_1: 18, clock: source")) as address:
        assert "have changed" in report(address, state, 1, "colour=blue", "plan=paid")
    assert len(sink.records) == 1


def test_terms_name_what_a_device_needs() -> None:
    known = gateway().terms(SURVEY)
    assert known["fingerprint"] == SURVEY.fingerprint
    assert [attribute["name"] for attribute in known["attributes"]] == ["colour", "plan"]


def test_a_survey_that_the_client_cannot_answer_is_refused() -> None:
    with pytest.raises(SurveyError, match="knows smp only"):
        gateway().terms(scheme("solution: spl,"))
