"""Every alert has a runbook, and what the runbooks say to run is run on a cluster where things have happened."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hearsay.running.stack import Stack
from protocols.wire import CLOCK, Clock, encode_clock
from servers.ports import free_port
from servers.settings import load
from stream_app.kafka import Topics
from tests.deploy.test_deploy import ALERTS
from tests.docs.pages import RUNBOOKS, Page
from tests.docs.test_commands import run_page
from tests.gateway.forked import Forked
from tests.helpers.counting import PATIENT, Counting
from tests.helpers.eventually import eventually
from tests.helpers.traffic import UNPUBLISHED
from tests.stream_app.worlds import SCHEME, Reports, Row, Tick, wire

INDEX = RUNBOOKS / "README.md"
PAGES = [Page(path) for path in sorted(RUNBOOKS.glob("*.md")) if path != INDEX]


def test_every_alert_names_its_page_and_every_page_has_an_alert() -> None:
    named = {rule["alert"]: rule["annotations"].get("runbook_url") for rule in ALERTS}
    assert named == {page.path.stem: f"docs/runbooks/{page.path.name}" for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_says_what_it_means_what_to_look_at_and_what_to_do(page: Page) -> None:
    headings = [line for line in page.text.splitlines() if line.startswith("#")]
    wanted = [f"# {page.path.stem}", "## What it means", "## What to look at", "## What to do"]
    assert [line for line in headings if line in wanted] == wanted
    assert page.run(), "nothing on it is tried"
    assert Page(INDEX).links.count(page.path.name) == 1


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A local stack with a worker, a gateway, a survey that nobody closes, and refused records. Gives variables."""
    stack = Stack(tmp_path_factory.mktemp("runbooks"))
    stack.up()
    settings, web = load(stack.settings_file), free_port()
    counting, key = Counting(settings.kafka, Topics(), stack.directory), settings.clock_key_bytes()
    told, log = {"HEARSAY_SETTINGS": str(stack.settings_file)}, stack.directory / "gateway.log"
    try:
        with counting.workers(1, *PATIENT, key=key) as (worker,):
            happen(counting, key)
            worker.wait_until_ready()
            with Forked(log, "gateway", "--web-port", str(web), **told).serving():
                pages = {"WORKER": f"http://127.0.0.1:{worker.port}", "GATEWAY": f"http://127.0.0.1:{web}"}
                yield {**told, **pages, "SURVEY": SCHEME.survey.id}
    finally:
        stack.down()


def happen(counting: Counting, key: bytes) -> None:
    """Period 0 is final, period 1 is open; a survey is published too late, and a clock record has another key."""
    counting.publish(SCHEME).send([Reports(0, tuple(Row(token) for token in range(1, 100)))])
    closing, partitions = encode_clock(Clock(SCHEME.survey.id, 0), key), counting.topics.partitions
    counting.put((partition, CLOCK, closing) for partition in range(partitions))
    counting.put([(0, *wire(Tick(1))), (0, *wire(Reports(0, (Row(partitions),)), UNPUBLISHED))])
    counting.send([Reports(1, tuple(Row(token) for token in range(1, 100)))])
    eventually(lambda: counting.caught_up() and len(counting.finals()) == 1)
    counting.publish(UNPUBLISHED)


@pytest.mark.long(part="pages")
@pytest.mark.integration
@pytest.mark.xdist_group("kafka")
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_commands_of_a_runbook_work_as_shown(
    page: Page, cluster: dict[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    prelude = "\n".join(f"export {name}={value}" for name, value in cluster.items())
    run_page(page, tmp_path, tmp_path_factory.mktemp("outputs"), prelude)
