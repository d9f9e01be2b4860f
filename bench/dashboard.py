"""The dashboard: how soon a page shows what was published, how many viewers one core serves, what a long survey takes.

The results are those of a simulated survey, made once in a directory and published to a Kafka broker as workers publish
them. Broker, dashboard and viewers share the machine; the dashboard runs on one core.

Decides how many viewers docs/dashboard.md promises to one core. Run it when events, their compression or the reading
of topics change.
"""

import asyncio
import json
import os
import re
import shutil
import statistics
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
from kafka import KafkaProducer

from bench._measuring import Table, broker
from bench._processes import ServerProcess
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from servers.ports import free_port
from servers.settings import KafkaSettings
from stream_app.finals import FinalKey
from stream_app.kafka import Topics, create, publish
from stream_app.log.flushes import RESULTS, Output
from views.local import collector
from views.results import LIVE, Live

PERIODS, VALUES, REPORTS = 1000, 100, 2000
VIEWERS, NEW_VIEWERS, UPDATES, RESTARTS = 200, 10, 30, 5
SHOWN_SECONDS, UPDATE_SECONDS, HEAP_MEGABYTES = 0.3, 0.1, 200.0
WAIT_SECONDS = 300.0
KEY = b"the operator's own key"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def run() -> Table:
    table = Table("Dashboard", ("", "measured", "wanted"))
    with broker() as (kafka, directory):
        topics = Topics("bench", 2, 1)
        create(kafka, topics)
        survey = _survey()
        publish(kafka, topics, survey)
        messages = list(_results(survey))
        producer = KafkaProducer(**kafka.client_options(), max_request_size=4 << 20)
        _send(producer, topics, messages)
        asyncio.run(_measure(table, kafka, topics, producer, messages, directory))
        producer.close()
    return table


async def _measure(
    table: Table, kafka: KafkaSettings, topics: Topics, producer: KafkaProducer, messages: list[Output], directory: Path
) -> None:
    began = time.monotonic()
    dashboard = Dashboard(kafka, topics, directory / "dashboard.log")
    with dashboard.serving():
        table.row(f"ready, {PERIODS:,} periods x {VALUES} values", f"{time.monotonic() - began:.1f} s", "")
        began = time.monotonic()
        new = [Viewer(dashboard.port) for _ in range(NEW_VIEWERS)]
        viewing = [asyncio.create_task(viewer.view()) for viewer in new]
        await _until(lambda: all(len(viewer.finals) == PERIODS for viewer in new), "new viewers have everything")
        table.row(f"everything at {NEW_VIEWERS} new viewers", f"{time.monotonic() - began:.1f} s", "")
        table.row("what each was sent", f"{new[0].read / 1e6:.1f} MB, {new[0].text / 1e6:.0f} MB of text", "")
        back = [Viewer(dashboard.port, new[0].id) for _ in range(VIEWERS - NEW_VIEWERS)]
        viewing += [asyncio.create_task(viewer.view()) for viewer in back]
        viewers = new + back
        await asyncio.sleep(5)
        live = _live(messages)
        cpu, began = dashboard.cpu_seconds, time.monotonic()
        for number in range(UPDATES):
            _send(producer, topics, [_changed(live, number)])
            await asyncio.sleep(1)
        share = (dashboard.cpu_seconds - cpu) / (time.monotonic() - began)
        delays = sorted(delay for viewer in viewers for delay in viewer.delays)
        assert len(delays) >= VIEWERS * (UPDATES - 1), "updates are missing"
        middle, late = statistics.median(delays), delays[int(0.99 * len(delays))]
        text = f"{middle * 1000:.0f} ms, 99 %: {late * 1000:.0f} ms"
        _row(table, f"published to {VIEWERS} viewers, median", text, SHOWN_SECONDS, middle)
        table.row(f"core used, one update a second to {VIEWERS}", f"{share:.0%}", "")
        for _ in range(RESTARTS):
            dashboard.kill()
            await asyncio.to_thread(dashboard.start().wait_until_ready)
        _send(producer, topics, [_changed(live, UPDATES)])
        await _until(lambda: all(viewer.newest == UPDATES for viewer in viewers), "the viewers are back")
        lost = sum(len(viewer.finals) != PERIODS for viewer in new)
        doubled = sum(number > 1 for viewer in new for number in viewer.finals.values())
        doubled += sum(len(viewer.finals) for viewer in back)
        table.row(f"killed {RESTARTS} times: lost, doubled", f"{lost}, {doubled}", "0, 0")
        if lost or doubled:
            table.missed.append(f"{lost} lost, {doubled} doubled")
        for task in viewing:
            task.cancel()
        await asyncio.gather(*viewing, return_exceptions=True)
        await asyncio.to_thread(_browse, table, dashboard, topics, producer, live)


def _browse(table: Table, dashboard: "Dashboard", topics: Topics, producer: KafkaProducer, live: Live) -> None:
    """The same in a browser, if there is one."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        table.remarks.append("no browser: what a page shows was not measured")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{dashboard.port}/?survey=bench")
        page.wait_for_selector("#over-time svg", timeout=WAIT_SECONDS * 1000)
        page.wait_for_timeout(5000)
        page.evaluate(_WATCH)
        delays = []
        for number in range(100, 100 + UPDATES):
            at = _send(producer, topics, [_changed(live, number)])
            page.wait_for_timeout(500)
            shown = page.evaluate("number => window.seen[number]", f"{_reports(number):,}")
            delays.append(shown / 1000 - at if shown else float("inf"))
        middle = statistics.median(delays)
        _row(table, "published to shown by a page, median", f"{middle * 1000:.0f} ms", SHOWN_SECONDS, middle)
        took = statistics.median(page.evaluate("window.took"))
        _row(table, "the page's own work for an update, median", f"{took:.0f} ms", UPDATE_SECONDS, took / 1000)
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        heap = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
        _row(table, "memory of its scripts", f"{heap:.0f} MB", HEAP_MEGABYTES, heap, "MB")
        browser.close()


# Notes when the number of an update is first among the figures on top, and how long the page worked for each update.
_WATCH = """() => {
  window.seen = {}; window.took = [];
  const receive = window.hearsayPage.receive;
  window.hearsayPage.receive = (events) => {
    let began;  // the frame in which it is drawn: waiting for it is no work
    requestAnimationFrame(() => { began = performance.now(); });
    const taking = performance.now();
    receive(events);
    const taken = performance.now() - taking;
    requestAnimationFrame(() => setTimeout(() => window.took.push(performance.now() - began + taken), 0));
  };
  const look = () => {
    for (const figure of document.querySelectorAll("#header .figure b")) window.seen[figure.textContent] ??= Date.now();
  };
  new MutationObserver(look).observe(document.querySelector("#header"), { childList: true, subtree: true });
}"""


def _row(table: Table, what: str, measured: str, limit: float, found: float, unit: str = "ms") -> None:
    wanted = f"{limit * 1000:.0f} ms" if unit == "ms" else f"{limit:.0f} {unit}"
    table.row(what, measured, wanted)
    if found > limit:
        table.missed.append(f"{what}: {measured}, wanted {wanted}")


class Dashboard(ServerProcess):
    """On one core."""

    name = "dashboard"

    def __init__(self, kafka: KafkaSettings, topics: Topics, log: Path) -> None:
        port = free_port()
        words = "-m", "hearsay", "dashboard", "--kafka", kafka.bootstrap, "--port", str(port)
        super().__init__(log, port, *words, HEARSAY_KAFKA_PREFIX=topics.prefix)

    def start(self) -> Self:
        super().start()
        os.sched_setaffinity(self._started.pid, {min(os.sched_getaffinity(0))})
        return self


class Viewer:
    """Takes a stream as a browser does, and connects again when it ends."""

    def __init__(self, port: int, id: str = "") -> None:
        self._port = port
        self.id = id
        self.finals: Counter[str] = Counter()
        self.delays: list[float] = []
        self.newest = -1
        self.read = self.text = 0

    async def view(self) -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._stream()
            await asyncio.sleep(1)

    async def _stream(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        try:
            last = f"Last-Event-ID: {self.id}\r\n" if self.id else ""
            ask = f"GET /events?survey=bench HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n{last}\r\n"
            writer.write(ask.encode())
            await reader.readuntil(b"\r\n\r\n")
            unpack, text = zlib.decompressobj(31), b""
            while chunk := await reader.read(1 << 16):
                part = unpack.decompress(chunk)
                self.read += len(chunk)
                self.text += len(part)
                *whole, text = (text + part).split(b"\n\n")
                for message in whole:
                    self._take(message)
        finally:
            writer.close()

    def _take(self, message: bytes) -> None:
        found = re.match(rb'id: (\S+)\ndata: \{"kind":"(\w+)","survey":"bench","key":"([^"]+)"', message)
        if not found:
            return
        self.id = found[1].decode()
        if found[2] == b"mobility":
            self.finals[found[3].decode()] += 1
        elif found[2] == b"live":
            (lates,) = re.findall(rb'"lates":(\{[^}]*\})', message)
            note = json.loads(lates)
            if "1" in note:
                self.newest = note["0"]
                self.delays.append(time.time() - note["1"] / 1000)


def _survey() -> Survey:
    return parse_survey(
        "{id: bench, start: 2026-01-01T00:00Z, period: 1h, horizon: 7, eps_inf: 4, eps_1: 2, clock: source, "
        f"attributes: [{{name: area, role: area, range: {{last: {VALUES - 1}}}, mechanism: l-grr}}]}}"
    )


def _results(survey: Survey) -> Iterator[Output]:
    """What is published about all periods, and the last one still open."""
    scheme, random = Scheme(survey), np.random.default_rng(1)
    names = {topic.name for topic in RESULTS}
    with (
        tempfile.TemporaryDirectory() as directory,
        collector(Path(directory), [survey], KEY, KEY) as app,
    ):
        for period in range(PERIODS + 1):
            tokens = np.sort(random.integers(1, 1 << 63, REPORTS, dtype=np.uint64))
            gaps = random.integers(1, 8, REPORTS).astype(np.uint16)
            answers = {"area": random.integers(0, VALUES, REPORTS).astype(np.uint8)}
            frame = Frame("bench", scheme.fingerprint, period, tokens, gaps, answers)
            app.send(0, FRAME, encode_frame(frame, scheme))
            if period < PERIODS:
                app.send(0, CLOCK, encode_clock(Clock("bench", period), KEY))
            app.flush()
        yield from (message for _, message in app.store.after(0) if message.topic in names)


def _send(producer: KafkaProducer, topics: Topics, messages: list[Output]) -> float:
    """Publish, and return when that was confirmed to have begun."""
    at = time.time()
    for message in messages:
        producer.send(topics.named(message.topic), message.value, message.key, list(message.headers), partition=0)
    producer.flush(60)
    return at


def _live(messages: list[Output]) -> Live:
    from views.encoding import decode

    (newest,) = [message for message in messages if message.topic == LIVE.name]
    found: Any = Live.model_validate(decode(newest.value))
    assert isinstance(found, Live) and found.open
    return found


def _reports(number: int) -> int:
    return 100_000 + number


def _changed(live: Live, number: int) -> Output:
    """A live result with so many reports. Where it has late reports is noted which one it is, and when it was made."""
    (period,) = live.open
    changed = live.model_copy(
        update={
            "open": (period.model_copy(update={"n": _reports(number)}),),
            "lates": {0: number, 1: round(time.time() * 1000)},
        }
    )
    (message,) = LIVE.messages(FinalKey("bench"), changed)
    return message


async def _until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"it took longer than {WAIT_SECONDS} seconds until {what}"
        await asyncio.sleep(0.05)
