"""Every example goes its whole way: check, plan, serve or gateway, a device's report, close, report, dossier.

Failure would look like: a command with the exit code of a bug, a report that is not taken, or a period without it.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hearsay.cli import app
from hearsay.data_directory import DataDirectory
from protocols.scheme import Scheme
from protocols.wire import CLOCK, Clock, Frame, decode_frame, encode_clock
from stream_app.kafka import Registry
from stream_app.local import LocalStore
from tests.gateway.forked import Forked
from tests.gateway.world import KeepingLog, Moment, serving
from tests.helpers.counting import Counting, NewCounting
from tests.helpers.eventually import eventually
from tests.helpers.every_survey import Case, examples, vectors
from tests.helpers.nursery import run
from tests.helpers.publishing import record_of
from tests.stream_app.worlds import KEY
from views.local import collector
from views.reading import Results

BATCHES = 4
"""Of the vectors: a process that serves all of them takes long to start, and to publish one reads all others."""


def called(*words: object, **environment: str) -> str:
    """What a command prints, here in this process. An error that nobody foresaw is raised, and any other fails."""
    done = CliRunner().invoke(app, list(map(str, words)), env=environment, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def called_here(counting: Counting, *words: object) -> None:
    called(*words, **counting.environment, HEARSAY_CLOCK_KEY=KEY.hex())


def called_apart(counting: Counting, *words: object) -> None:
    """The same in a process of its own."""
    done = run(*map(str, words), **counting.environment, HEARSAY_CLOCK_KEY=KEY.hex())
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("surveys")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return examples()


@pytest.fixture(scope="module")
def files(directory: Path, cases: list[Case]) -> list[Path]:
    return [case.file(directory) for case in cases]


def close_all(cases: list[Case], data: Path) -> None:
    """Close the period that it is now, and those before it: with the records that `serve` writes when they end."""
    keys = DataDirectory(data)
    surveys = [case.survey for case in cases]
    with collector(keys.collector, surveys, keys.clock_key(), keys.presence_key()) as kept:
        for case in cases:
            record = encode_clock(Clock(case.survey.id, period_now(case)), kept.clock_key)
            for partition in range(kept.partitions):
                kept.send(partition, CLOCK, record)


def test_the_examples_pass_the_check(files: list[Path], cases: list[Case]) -> None:
    check(files, cases)


@pytest.mark.long(part="clients")
def test_the_vectors_pass_the_check_and_are_planned(directory: Path) -> None:
    cases = vectors()
    files = [case.file(directory) for case in cases]
    check(files, cases)
    for file in files:
        called("plan", file, "--json")


def check(files: list[Path], cases: list[Case]) -> None:
    checked = run("survey", "check", *map(str, files), "--json")
    assert checked.returncode == 0, checked.stderr
    found = [survey["id"] for survey in json.loads(checked.stdout)]
    assert found == [case.survey.id for case in cases]


@pytest.mark.parametrize("place", range(len(examples())), ids=lambda place: examples()[place].name)
def test_each_example_is_planned(place: int, files: list[Path]) -> None:
    planned = run("plan", str(files[place]), "--json")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["attributes"]


def shows_counts(case: Case) -> bool:
    """Whether a single report shows: neither noise nor a minimum hides it."""
    return case.survey.presence_epsilon is None and not case.survey.minimum


def reports_of(case: Case, data: Path) -> list[int | None]:
    """How many reports the periods of a survey have."""
    results = Results(LocalStore.existing(DataDirectory(data).collector))
    return [final.n for final in results.histograms(case.survey.id)]


def go_through_serve(cases: list[Case], directory: Path) -> None:
    """One `hearsay serve` of them, a report to each, and what the finals have when all is closed."""
    data = directory / "data"
    files = [str(case.file(directory)) for case in cases]
    with Forked(directory / "serve.log", "serve", *files, "--data", str(data)).serving() as server:
        for case in cases:
            assert case.report_to(f"http://127.0.0.1:{server.port}", directory) == "reported", case.name
        assert json.loads(server.page("/ready")) == {"ready": True}
        assert server.leave() == 0, server.log.read_text()
    close_all(cases, data)
    for case in cases:
        page = directory / f"{case.survey.id}.html"
        called("dossier", case.file(directory), "--data", data, "--html", page)
        assert case.survey.id in page.read_text()
        called("report", case.survey.id, "--data", data, "--json")
        if shows_counts(case):
            assert 1 in reports_of(case, data), case.name


def go_through_gateway(cases: list[Case], counting: Counting, directory: Path, call: Callable[..., None]) -> None:
    """The same through a cluster: `survey publish`, `gateway`, `worker`, `close` and `report`."""
    for case in cases:
        call("survey", "publish", case.file(directory))
    words = ("gateway", "--app", counting.topics.prefix)
    gateway = Forked(directory / "gateway.log", *words, **counting.environment)
    with counting.workers(), gateway.serving():
        for case in cases:
            assert case.report_to(f"http://127.0.0.1:{gateway.port}", directory) == "reported", case.name
        assert json.loads(gateway.page("/ready")) == {"ready": True}
        assert gateway.leave() == 0, gateway.log.read_text()
        for case in cases:
            call("close", case.survey.id, "--through", period_now(case), "--yes", "--force")
        surveys = {case.survey.id for case in cases}
        eventually(lambda: surveys <= {key.survey for key in counting.finals()})
    for case in cases:
        if shows_counts(case):
            assert 1 in counting.counted(case.survey.id), case.name
        call("report", case.survey.id, "--kafka", counting.kafka.bootstrap, "--json")


def period_now(case: Case) -> int:
    return case.survey.period_of(datetime.now(UTC))


def test_the_examples_go_through_one_served_process(tmp_path: Path) -> None:
    go_through_serve(examples(), tmp_path)


def test_the_examples_go_through_a_gateway(tmp_path: Path) -> None:
    """As a gateway has them: registered from their records, and served by its application."""
    registry = Registry()
    cases = examples(1)
    for offset, case in enumerate(cases):
        registry.register(record_of(case.survey, Scheme(case.survey).fingerprint, offset))
    assert registry.refused == {}
    log = KeepingLog()
    now = Moment(datetime.now(UTC).timestamp())
    with serving(log, list(registry.schemes.values()), now, refused=registry.refused) as gateway:
        for case in cases:
            assert case.report_to(f"http://127.0.0.1:{gateway.port}", tmp_path) == "reported", case.name
        assert gateway.ask("GET", "/ready").json == {"ready": True}
    frames = [decode_frame(value, registry.schemes.get) for _, value in log.frames]
    assert [frame.survey for frame in frames if isinstance(frame, Frame)] == [case.survey.id for case in cases]


@pytest.mark.long(part="clients")
@pytest.mark.integration
def test_the_examples_go_through_a_cluster(new_counting: NewCounting, tmp_path: Path) -> None:
    counting = new_counting(partitions=1, merge_partitions=1)
    go_through_gateway(examples(), counting, tmp_path, partial(called_apart, counting))


@pytest.mark.long(part="clients")
def test_the_examples_go_through_one_served_process_with_the_other_library(tmp_path: Path) -> None:
    go_through_serve(examples(1), tmp_path)


@pytest.mark.long(part="clients")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_vectors_go_through_served_processes(batch: int, tmp_path: Path) -> None:
    go_through_serve(vectors()[batch::BATCHES], tmp_path)


@pytest.mark.long(part="clients")
@pytest.mark.integration
@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_vectors_go_through_a_cluster(batch: int, new_counting: NewCounting, tmp_path: Path) -> None:
    """With the other library than `serve`."""
    counting = new_counting(partitions=1, merge_partitions=1)
    go_through_gateway(vectors(1)[batch::BATCHES], counting, tmp_path, partial(called_here, counting))
