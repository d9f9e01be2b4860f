"""Devices that stop at any moment: the next process sends the same bytes or none, whatever the value is by then."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import expect

from hearsay.survey_files import read_survey
from hearsay_device import Device, DeviceError, Limits
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from stream_app.local.log import LocalLog
from tests.clients.cases import ANY, FILE
from tests.clients.libraries import Clock, open_device
from tests.clients.test_device import CAPPED, Days
from tests.gateway.forked import Forked
from tests.helpers.browser import Files, open_browser
from tests.helpers.command_line import done
from tests.helpers.loopback import TAKEN, answering, gateway, served
from tests.helpers.node import find_node
from tests.lab.calling import figures_of

HERE = Path(__file__).parent
PATIENCE_SECONDS = 120


class Watched:
    """A connection to a database that tells after every statement that it was executed."""

    def __init__(self, base: sqlite3.Connection, executed: Callable[[], None]) -> None:
        self._base, self._executed = base, executed

    def execute(self, *statement: Any) -> Any:
        found = self._base.execute(*statement)
        self._executed()
        return found

    @property
    def in_transaction(self) -> bool:
        return self._base.in_transaction

    def close(self) -> None:
        self._base.close()


def test_whatever_is_on_disk_when_a_device_stops_is_enough_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files after each statement of two reports, as a loss of power would leave them.

    A failure would be: other bytes for a period that was sent before; no report at all; or a charge that is missing.
    """
    clock, moments, first = Days(), [], tmp_path / "first"
    first.mkdir()
    connect = sqlite3.connect
    with gateway(answering(200, CAPPED.terms)) as running:

        def keep() -> None:
            copy = tmp_path / f"after {len(moments)}"
            shutil.copytree(first, copy)
            moments.append((copy, clock.day, list(running.posted)))

        monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: Watched(connect(*a, **o), keep))
        with Device(first / "device", limits=Limits(**ANY), now=clock, wait=clock.waited.append) as device:
            for clock.day in (0, 1):
                device.send(running.address, "test", {"a": 1})
        monkeypatch.undo()
        assert len(moments) > 40
        for copy, clock.day, posted in moments:
            running.posted.clear()
            with Device(copy / "device", limits=Limits(**ANY), now=clock, wait=clock.waited.append) as device:
                sent = device.send(running.address, "test", {"a": 7})
                year = device.explain()["year"]
            assert sent.period == clock.day
            for report in posted:
                assert [each for each in running.posted if _period(each) == _period(report)] in ([], [report])
            assert {_period(each) for each in [*posted, *running.posted]} >= {clock.day}
            assert year["answers"] == 1 + clock.day and year["charged"] == pytest.approx(2 * (1 + clock.day))


def _period(report: bytes) -> int:
    return int(report.split(b'"period":"')[1][:8], 16)


@pytest.mark.long(part="clients")
def test_a_device_in_javascript_that_was_killed_at_any_operation_on_files_goes_on(tmp_path: Path) -> None:
    """A failure would be: other bytes for a period that was sent before, no report, or a lock that nobody removes."""
    node, program, noon = find_node(), str(HERE / "device.mjs"), datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
    with gateway(answering(200, CAPPED.terms)) as running:
        for operation in count():
            running.posted.clear()
            state = tmp_path / f"killed at {operation}" / "device"
            state.parent.mkdir()
            killed = subprocess.run(
                [node, "--import", str(HERE / "dying.mjs"), program, running.address, str(state), "1"],
                env={**os.environ, "DIES_AT": str(operation)}, timeout=PATIENCE_SECONDS, check=False, cwd=tmp_path,
            )  # fmt: skip
            with open_device("javascript", state, Clock(noon), Limits(**ANY)) as device:
                assert device.send(running.address, "test", {"a": "7"}).period == 0, operation
            assert 1 <= len(running.posted) <= 2 and len(set(running.posted)) == 1, operation
            assert not (state.parent / "device.lock").exists()
            if killed.returncode == 0:
                break
    assert operation > 40


# The JavaScript library in a browser, and the programs of the READMEs against `hearsay serve`: they are counted.
CLIENTS = Path(__file__).parents[2] / "clients"
SURVEY = (Path(__file__).parent / "lunch.yaml").read_text()
PIN_OF_READMES = "7fd0611576e99a5cf415e8b345a223286101a8a8f33249ee70d1aae90eecf915"


@dataclass
class Lunch:
    """The survey of the READMEs, which is running."""

    server: Forked
    scheme: Scheme
    data: Path

    def program(self, language: str, kind: str) -> str:
        """The program of a README, for this server."""
        (program,) = re.findall(rf"```{kind}\n(.*?)```", (CLIENTS / language / "README.md").read_text(), re.DOTALL)
        assert len(program.splitlines()) <= 10
        address = re.sub(r"https://[a-z.]+", f"http://127.0.0.1:{self.server.port}", program)
        assert PIN_OF_READMES in address
        return address.replace(PIN_OF_READMES, sha256(self.scheme.terms).hexdigest())

    def counted(self) -> int:
        """Ends the server; how many reports it has taken."""
        assert self.server.leave() == 0, self.server.log.read_text()
        with closing(LocalLog(self.data / "collector" / "log" / "0.log", 0)) as log:
            frames = [record.value for record in log.unread if "frame" in str(record.content_type)]
        return sum(pa.ipc.open_stream(frame).read_all().num_rows for frame in frames)


@contextmanager
def serving_lunch(directory: Path, *more: str) -> Iterator[Lunch]:
    text = SURVEY.replace("NOW", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    (directory / "survey.yaml").write_text(text)
    data = directory / "data"
    words = ("serve", str(directory / "survey.yaml"), "--data", str(data), *more)
    with Forked(directory / "serve.log", *words).serving() as server:
        yield Lunch(server, Scheme(parse_survey(text)), data)


def said(*command: str, directory: Path, **environment: str) -> list[str]:
    directory.mkdir(exist_ok=True)
    return done(*command, directory=directory, **environment).splitlines()


def test_the_program_of_the_python_readme_is_counted_and_needs_nothing_of_hearsay(tmp_path: Path) -> None:
    with serving_lunch(tmp_path) as lunch:
        program = lunch.program("python", "py") + (
            "\nimport sys\nprint({name.partition('.')[0] for name in sys.modules} & {'numpy', 'protocols', 'hearsay'})"
        )
        outcomes = [
            said(sys.executable, "-c", program, directory=tmp_path / name, PYTHONPATH=str(CLIENTS / "python"))
            for name in ("one", "one", "other")
        ]
        assert outcomes == [[f"period 0: {status}", "set()"] for status in ("reported", "already reported", "reported")]
        assert lunch.counted() == 2


def test_a_survey_that_is_signed_is_accepted_by_its_authors_key_and_by_no_other(tmp_path: Path) -> None:
    file = tmp_path / "survey.yaml"
    file.write_text(SURVEY.replace("NOW", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")))
    unsigned = Scheme(read_survey(file)).fingerprint
    authors = [figures_of("survey sign", file, "--key", tmp_path / key) for key in "ba"]
    assert {author["fingerprint"] for author in authors} == {unsigned, Scheme(read_survey(file)).fingerprint}
    wrong, right = (author["author"] for author in authors)
    with Forked(tmp_path / "serve.log", "serve", str(file), "--data", str(tmp_path / "data")).serving() as server:
        address = f"http://127.0.0.1:{server.port}"
        with Device(tmp_path / "my.device") as device:
            for author, code in ((wrong, "signature"), ("YQ==", "settings")):
                with pytest.raises(DeviceError) as refused:
                    device.send(address, "lunch", {"dish": "soup"}, author=author)
                assert refused.value.code == code
            assert device.send(address, "lunch", {"dish": "soup"}, author=right).status == "reported"
        program = f"""
            import {{ Device }} from {json.dumps(str(CLIENTS / "javascript" / "device.js"))};
            const sent = (author) => new Device("js").send("{address}", "lunch", {{ dish: "soup" }}, {{ author }});
            for (const author of ["{wrong}", "YQ=="]) await sent(author).catch(({{ code }}) => console.log(code));
            console.log((await sent("{right}")).status);
        """
        outcome = said(find_node(), "--input-type=module", "--eval", program, directory=tmp_path)
        assert outcome == ["signature", "settings", "reported"]
        assert server.leave() == 0, server.log.read_text()


@pytest.mark.long(part="clients")
def test_the_program_and_the_page_of_the_javascript_readme_are_counted(tmp_path: Path) -> None:
    npm = shutil.which("npm") or pytest.skip("there is no npm here")
    site = tmp_path / "site"
    site.mkdir()
    for file in (CLIENTS / "javascript").glob("*.js"):
        shutil.copy(file, site)

    class Site(Files):
        directory = site

    with served(Site) as address, serving_lunch(tmp_path, "--origin", address) as lunch, open_browser() as browser:
        own = tmp_path / "app"
        said(npm, "install", "--offline", "--no-audit", "--no-fund", str(CLIENTS / "javascript"), directory=own)
        (own / "program.mjs").write_text(lunch.program("javascript", "js"))
        outcomes = [said(find_node(), "program.mjs", directory=own) for _ in range(2)]
        assert outcomes == [["period 0: reported"], ["period 0: already reported"]]
        assert [path.name for path in (own / "node_modules").iterdir() if path.name[0] != "."] == ["hearsay-device"]
        (site / "index.html").write_text(lunch.program("javascript", "html"))
        page = browser.new_page()
        for status in ("reported", "already reported"):
            page.goto(f"{address}/")
            expect(page.locator("body")).to_contain_text(f"period 0: {status}")
        assert lunch.counted() == 2


PAGE_SECONDS = 180


@contextmanager
def serving(posted: list[bytes]) -> Iterator[str]:
    """The library's files, the vectors, and a gateway with one survey, at one address. A page says when it is done."""

    class Handler(Files):
        def do_GET(self) -> None:
            own = {"/vectors.json": FILE.read_bytes(), "/v1/surveys/test": CAPPED.terms}
            if self.path in own:
                answering(200, own[self.path])(self)
            else:
                super().do_GET()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path != "/done":
                posted.append(body)
            TAKEN(self)

    with served(Handler) as address:
        yield address


@pytest.mark.long(part="clients")
def test_a_browser_makes_the_reports_of_the_vectors_and_sends_its_own() -> None:
    posted: list[bytes] = []
    with serving(posted) as address, open_browser() as browser:
        page = browser.new_page()
        with page.expect_request("**/done", timeout=1000 * PAGE_SECONDS) as told:
            page.goto(f"{address}/tests/browser.html")
        outcome = told.value.post_data
    cases = len(json.loads(FILE.read_text())["cases"])
    assert outcome == f"{cases} cases, 0 wrong steps, period 4 sent, then already reported"
    (report,) = posted
    assert json.loads(report)["fingerprint"] == CAPPED.fingerprint
