"""Real servers for the tests that need them: started when the first such test asks, stopped at the end."""

import gc
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
import structlog
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from bench._processes import ServerProcess
from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from servers import ports
from servers.kafka_broker import SHORT_LIVED, KafkaBroker
from servers.redis_server import RedisServer, embedded_program, release_of
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create
from tests.helpers.counting import Counting, NewCounting
from tests.helpers.nursery import launch

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The same examples every time, and no test that asserts a time: whatever fails here fails everywhere.
settings.register_profile(
    "hearsay", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("hearsay")
# Hypothesis tries constants of those modules of ours that happen to be imported: other examples in each process.
providers.is_local_module_file = lambda path: False


def pytest_report_header() -> str:
    seed = os.environ.get("PYTHONHASHSEED", "random")
    return f"seeds: PYTHONHASHSEED={seed}; hypothesis is derandomized; every other seed is a number in its test"


def pytest_collection_finish() -> None:
    """What was imported and collected stays: the garbage collector need not look at it again and again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def logs_as_python_has_them(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test configures of logs is gone after it.

    Loggers that are kept at their first use would write to the log of that test for ever, and `capture_logs` of later
    ones in the same process would see nothing.
    """
    configure = structlog.configure

    def keep_no_logger(**given: Any) -> None:
        configure(**{**given, "cache_logger_on_first_use": False})

    monkeypatch.setattr(structlog, "configure", keep_no_logger)
    yield
    structlog.reset_defaults()


SHARED = {"module", "package", "session"}
PER_PROCESS = {"redis_server", "_hasty_server"}
"""Quickly made; what shares them may run in any process."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share something that takes long to make run in one process of the test run, the longest groups first.

    Those that share a broker mostly wait, so one process has all of them; of the long ones, two have half each.
    """
    for item in items:
        if "kafka" in getattr(item, "fixturenames", ()):
            apart = item.get_closest_marker("long") and item.path.stem.startswith("test_worker")
            item.add_marker(pytest.mark.xdist_group("workers" if apart else "kafka"))
            item.add_marker(pytest.mark.integration)
        elif item.get_closest_marker("xdist_group") is None and _shares(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=lambda item: item.get_closest_marker("integration") is None)


def _shares(item: pytest.Item) -> bool:
    """Whether it uses a fixture that is made once for several tests (not one that merely sets something)."""
    fixtures = getattr(item, "_fixtureinfo", None)
    made = fixtures.name2fixturedefs if fixtures else {}
    return any(
        definitions[-1].scope in SHARED and not name.startswith("_") and definitions[-1].baseid
        for name, definitions in made.items()
        if name not in PER_PROCESS
    )


@pytest.fixture(autouse=True, scope="session")
def _settings_come_from_the_tests() -> None:
    """Whatever this shell says about servers does not reach the tests (the cache of program files may stay)."""
    for name in list(os.environ):
        if name.startswith("HEARSAY_") and name != "HEARSAY_CACHE":
            del os.environ[name]


@pytest.fixture(autouse=True, scope="session")
def _ports_of_this_process() -> None:
    """Each process of the test run chooses its servers' ports from a share of its own: none takes another's."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    size = len(ports.RANGE) // processes
    ports.RANGE = ports.RANGE[number % processes * size :][:size]


@pytest.fixture(autouse=True, scope="session")
def _servers_start_soon() -> None:
    """Brokers start with little more than half of the work; workers and the like are forked, with all imports done."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", " ".join(SHORT_LIVED))
    ServerProcess.launch = staticmethod(launch)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A running Redis, shared by the tests of this process; `redis_url` gives an empty one."""
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The address of a Redis that is empty at the start of the test."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    return redis_server.url


@pytest.fixture
def open_memos(redis_url: str) -> Iterator[Callable[[Respondent], SurveyMemos]]:
    """Open a survey's memos in a store that is empty at the start of the test; each time as a new process would."""
    with ExitStack() as stores:
        yield lambda respondent: stores.enter_context(MemoStore(redis_url)).survey(respondent)


SYSTEMS_REDIS = [Path(found) for found in [shutil.which("redis-server")] if found]


@pytest.fixture(params=[embedded_program(), *SYSTEMS_REDIS], ids=lambda program: str(release_of(program)))
def redis_executable(request: pytest.FixtureRequest) -> Path:
    """Each server on this machine in turn: the embedded Valkey, and the system's Redis (7 on Debian)."""
    path: Path = request.param
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A browser. It ends with its module: in a process that drives one, others cannot run a loop of their own."""
    from tests.helpers.browser import open_browser

    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A running broker, shared by all tests that use one. Whoever kills it starts it again."""
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka")).start()
    yield broker
    broker.stop()


@pytest.fixture
def kafka_settings(kafka: KafkaBroker) -> KafkaSettings:
    """How to reach the shared broker, which is running at the start of the test."""
    if not kafka.running:
        kafka.start()
    return KafkaSettings(bootstrap=kafka.bootstrap)


_prefixes = (f"t{number}" for number in itertools.count(1))


@pytest.fixture
def fresh_topics(kafka_settings: KafkaSettings) -> Callable[..., Topics]:
    """Make a set of our topics that no other test uses: `fresh_topics(partitions=3, merge_partitions=2)`."""

    def make(**shape: int) -> Topics:
        topics = Topics(next(_prefixes), **shape)
        create(kafka_settings, topics)
        return topics

    return make


@pytest.fixture
def new_counting(kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path) -> NewCounting:
    """Make topics that no other test uses, with surveys: `new_counting(SCHEME, partitions=3, merge_partitions=2)`."""

    def make(*schemes: Scheme, **shape: int) -> Counting:
        return Counting(kafka_settings, fresh_topics(**shape), tmp_path).publish(*schemes)

    return make
