"""A survey at which this release fails is left out alone, with its reason; all others are collected.

The failure is planted: an index beyond a list, as an encoding with a bug raises it.
"""

import asyncio
import json
import os
import signal
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from hearsay.data_directory import DataDirectory
from hearsay.serving.embedded_log import read_surveys, serve_surveys
from hearsay.serving.running import Exposure
from hearsay.serving.worker import worker_pages
from protocols.errors import StateError, SurveyDefect
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import format_survey
from protocols.wire import Clock
from stream_app.faust_app import app as worker_app
from stream_app.faust_app.app import StreamApp
from stream_app.faust_app.monitoring import Health
from stream_app.kafka import Registry, Topics
from stream_app.local import EmbeddedApp
from stream_app.merging.survey import SurveyStatus
from tests.gateway.world import KeepingLog, scheme, serving
from tests.helpers.publishing import record_of
from tests.stream_app.worlds import KEY, Reports, Row, wire
from views.local import collector
from views.reading import Results

WHY = "IndexError: planted"
PATIENCE_SECONDS = 60
DAYS_AGO = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)


GOOD = scheme("minimum: 0,", "good", DAYS_AGO.isoformat())
BAD = scheme("minimum: 0,", "bad", DAYS_AGO.isoformat())


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From when it is called, no survey `bad` can be compiled."""
    compiled = Scheme.__init__

    def fail(scheme: Scheme, survey: Survey, *more: Any) -> None:
        if survey.id == "bad":
            raise IndexError("planted")
        compiled(scheme, survey, *more)

    return lambda: monkeypatch.setattr(Scheme, "__init__", fail)


def errors(logs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [entry for entry in logs if entry["log_level"] == "error"]


def test_a_published_survey_that_fails_leaves_all_others_up_and_is_named(plant: Callable[[], None]) -> None:
    """In gateways and in workers, which have the same registry."""
    plant()
    registry = Registry()
    with capture_logs() as logs:
        registry.register(record_of(BAD.survey, BAD.fingerprint, 0))
        registry.register(record_of(GOOD.survey, GOOD.fingerprint, 1))
    assert list(registry.schemes) == ["good"]
    (error,) = errors(logs)
    assert error["survey"] == "bad" and WHY in error["error"]
    with serving(KeepingLog(), list(registry.schemes.values()), refused=registry.refused) as gateway:
        shown = gateway.ask("GET", "/ready").json
    assert shown["ready"] is True
    assert WHY in shown["refused_surveys"]["bad"]
    health = Health()
    health.ready = lambda: True
    health.refused = registry.refused
    assert WHY in worker_pages(health)["/ready"]().body.decode()


def test_serve_leaves_out_one_of_several_files_and_says_why(plant: Callable[[], None], tmp_path: Path) -> None:
    plant()
    files = []
    for each in (BAD, GOOD):
        file = tmp_path / f"{each.survey.id}.yaml"
        file.write_text(format_survey(each.survey))
        files.append(file)
    with capture_logs() as logs:
        schemes, refused = read_surveys(files, tmp_path)
    assert [each.survey.id for each in schemes] == ["good"]
    assert list(refused) == [str(files[0])] and WHY in refused[str(files[0])]
    assert [entry["file"] for entry in errors(logs)] == [str(files[0])]
    assert WHY in served(schemes, tmp_path, refused)
    with pytest.raises(SurveyDefect, match=WHY):
        read_surveys(files[:1], tmp_path)


def served(schemes: list[Scheme], directory: Path, refused: dict[str, str]) -> str:
    """What `/ready` answers while these are served, in this process."""
    pages: list[str] = []
    address: list[str] = []
    is_said = Event()

    def say(line: str) -> None:
        if line.startswith("Collecting"):
            address.append(line.rpartition(" ")[2])
            is_said.set()

    def look() -> None:
        if is_said.wait(PATIENCE_SECONDS):
            with urllib.request.urlopen(f"{address[0]}/ready", timeout=PATIENCE_SECONDS) as answer:
                pages.append(answer.read().decode())
        os.kill(os.getpid(), signal.SIGTERM)

    looking = Thread(target=look)
    looking.start()
    try:
        serve_surveys(schemes, directory / "data", Exposure(port=0), say, refused)
    finally:
        is_said.set()
        looking.join(PATIENCE_SECONDS)
    assert pages, "nothing was served"
    return pages[0]


def keep(directory: Path, uncounted: bool = False) -> None:
    """Count a report of both surveys; the second one of each is only in the log, as after a crash."""
    app = collector(directory, [GOOD.survey, BAD.survey], KEY, KEY)
    for each in (GOOD, BAD):
        app.send(0, *wire(Reports(0, (Row(1),)), each))
    app.publish()
    if uncounted:
        app.send(0, *wire(Reports(0, (Row(2),)), BAD))
        app.sync()
    app.close()


def reported(app: EmbeddedApp, of: Scheme, token: int) -> int | None:
    """How many reports a survey has in its open period, after one more."""
    app.send(0, *wire(Reports(0, (Row(token),)), of))
    app.publish()
    live = Results(app.store).live(of.survey.id)
    assert live is not None
    return live.open[0].n


def test_a_kept_survey_that_fails_is_left_out_and_counted_again_by_a_release_that_can(
    plant: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Failure would look like: `serve` ends because of a survey of last year, or what was counted of it is gone."""
    keep(tmp_path)
    plant()
    with capture_logs() as logs, collector(tmp_path, [GOOD.survey], KEY, KEY) as app:
        assert list(app.refused) == ["bad"] and WHY in app.refused["bad"]
        assert [entry["survey"] for entry in errors(logs)] == ["bad"]
        assert reported(app, GOOD, 2) == 2
    monkeypatch.undo()
    with collector(tmp_path, [GOOD.survey, BAD.survey], KEY, KEY) as app:
        assert app.refused == {}
        assert reported(app, BAD, 2) == 2
        assert reported(app, GOOD, 3) == 3


def test_records_of_a_survey_that_is_left_out_are_not_passed_over(plant: Callable[[], None], tmp_path: Path) -> None:
    keep(tmp_path, uncounted=True)
    plant()
    with pytest.raises(StateError, match="reports of survey 'bad' that are not counted yet"):
        collector(tmp_path, [GOOD.survey], KEY, KEY)


def test_serve_names_a_kept_survey_that_it_leaves_out(plant: Callable[[], None], tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    collector(data.collector, [GOOD.survey, BAD.survey], data.clock_key(), data.presence_key()).close()
    plant()
    shown = json.loads(served([GOOD], tmp_path, {}))
    assert shown["ready"] is True
    assert WHY in shown["refused_surveys"]["bad"]


def test_a_survey_whose_periods_cannot_be_closed_does_not_stop_the_closing_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker's clock: one survey that fails is said once, and closed as soon as it can be."""
    fails = True
    last_due = worker_app.last_due

    def due(survey: Survey, now: datetime) -> int:
        if fails and survey.id == "bad":
            raise IndexError("planted")
        return last_due(survey, now)

    monkeypatch.setattr(worker_app, "last_due", due)
    worker = StreamApp.__new__(StreamApp)
    registry = worker._surveys = cast(Any, Registry())
    for offset, each in enumerate((BAD, GOOD)):
        registry.register(record_of(each.survey, each.fingerprint, offset))
    closed: list[str] = []

    async def close(clock: Clock) -> None:
        closed.append(clock.survey)

    status = SurveyStatus()
    reader = SimpleNamespace(status=lambda survey: status)
    worker._merging = cast(Any, SimpleNamespace(get=lambda partition: SimpleNamespace(reader=reader)))
    worker._writer = cast(Any, SimpleNamespace(close=close))
    worker._topics = Topics("small", 1, 1)
    worker._sent = {}
    with capture_logs() as logs:
        asyncio.run(worker._tick())
        asyncio.run(worker._tick())
    assert closed == ["good"]
    assert [entry["survey"] for entry in errors(logs)] == ["bad"]
    assert WHY in registry.refused["bad"]
    fails = False
    asyncio.run(worker._tick())
    assert closed == ["good", "bad"]
    assert registry.refused == {}
