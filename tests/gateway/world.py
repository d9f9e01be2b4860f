"""A gateway in a thread of the test, over a real embedded app, and what devices send to it."""

import asyncio
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from typing import Any

import uvloop

from gateway.door import Link, Times
from gateway.http import Limits, Listener
from gateway.service import Gateway, Holder, Log, Page, Senders, Writer
from hearsay.serving.embedded_log import EmbeddedLog
from protocols.errors import DeliveryError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from protocols.wire import FRAME, REPORT, Frame, ReportHeader, decode_frame
from views.local import collector

KEY = bytes(range(32))
PATIENCE_SECONDS = 60


def scheme(
    extra: str = "",
    id: str = "buttons",
    start: str = "2026-01-01T00:00:00Z",
    period: str = "1d",
    grace: str = "1h",
) -> Scheme:
    """A question that is answered with a symbol and one that is answered with ten bits, on every day or so."""
    return Scheme(
        parse_survey(
            f"{{id: {id}, start: '{start}', period: {period}, grace: {grace}, eps_inf: 4, eps_1: 2, solution: spl, "
            f"horizon: 7, {extra} attributes: [{{name: colour, values: [red, green, blue], mechanism: l-grr}}, "
            f"{{name: page, range: {{last: 9}}, mechanism: l-osue}}]}}"
        )
    )


SCHEME = scheme()


def key_of(header: ReportHeader) -> bytes | None:
    """A key for every period, as long as the test runs."""
    return Link(hour=0, link=KEY).key(header)


NOON = 1_767_268_800.0  # 12:00 of period 0


def report(of: Scheme = SCHEME, of_period: int = 0, **changes: Any) -> dict[str, Any]:
    """A good report with a token of its own, or what is made of it."""
    good = {
        "survey": of.survey.id,
        "fingerprint": of.fingerprint,
        "period": f"{of_period:08x}",
        "token": secrets.token_hex(8),
        "gap": "0007",
        "answers": {"colour": "01", "page": "0302"},
    }
    return {**good, **changes}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        return str(self.json["reason"])


@dataclass
class Moment:
    """The time that a gateway goes by."""

    value: float = NOON

    def __call__(self) -> float:
        return self.value


@dataclass
class KeepingLog:
    """Keeps frames; can be told to fail, or to wait."""

    partitions: int = 4
    times: Times = field(default_factory=Times)
    fails: bool = False
    attempts: int = 0
    may_write: Event = field(default_factory=Event)
    frames: list[tuple[int, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.may_write.set()

    async def write(self, frames: list[tuple[int, bytes]]) -> None:
        assert await asyncio.to_thread(self.may_write.wait, PATIENCE_SECONDS), "nobody let the log write"
        self.attempts += 1
        if self.fails:
            raise DeliveryError("told to fail")
        self.frames += frames

    async def tend(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def decoded(self, of: Scheme = SCHEME) -> list[tuple[int, Frame]]:
        found = []
        for partition, value in self.frames:
            frame = decode_frame(value, {of.survey.id: of}.get)
            assert isinstance(frame, Frame), frame
            found.append((partition, frame))
        return found


@dataclass
class Served:
    """A gateway that runs."""

    port: int
    gateway: Gateway
    listener: Listener
    writer: Writer
    loop: asyncio.AbstractEventLoop

    def ask(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> Answer:
        """One request over a connection of its own; `_` in the names of headers stands for `-`."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)) as connection:
            connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read())

    def post(self, content: Any, **headers: str) -> Answer:
        """Reports as JSON."""
        return self.ask("POST", "/v1/reports", json.dumps(content), content_type="application/json", **headers)

    def post_frame(self, value: bytes, **headers: str) -> Answer:
        return self.ask("POST", "/v1/frames", value, content_type=FRAME, **headers)

    def post_one(self, content: Any, **headers: str) -> Answer:
        return self.ask("POST", "/v1/reports", json.dumps(content), content_type=REPORT, **headers)


@contextmanager
def serving(
    log: Log,
    schemes: Sequence[Scheme] = (SCHEME,),
    now: Moment | None = None,
    senders: Senders | None = None,
    limits: Limits | None = None,
    holder: Holder | None = None,
    origins: Sequence[str] = (),
    tls: Any = None,
    names: Sequence[str] = (),
    pages: Mapping[str, Page] | None = None,
    refused: Mapping[str, str] | None = None,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> Iterator[Served]:
    """A gateway in front of a log, until the block ends."""
    known = {each.survey.id: each for each in schemes}
    clock = now or Moment()
    started: list[Served] = []
    up, stop = Event(), Event()

    async def run() -> None:
        writer = Writer(log, known.get, now=clock, holder=holder)
        gateway = Gateway(
            known,
            writer,
            senders or Senders(),
            lambda: True,
            origins=frozenset(origins),
            pages=pages or {},
            refused_surveys=refused or {},
        )
        listener = Listener(gateway, limits or Limits(), tls, frozenset(names))
        port = await listener.start("127.0.0.1", 0)
        started.append(Served(port, gateway, listener, writer, asyncio.get_running_loop()))
        up.set()
        while not stop.is_set():
            await asyncio.sleep(0.01)
        await listener.stop()
        await writer.finish()

    def run_loop() -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(run())

    thread = Thread(target=run_loop, daemon=True)
    thread.start()
    assert up.wait(PATIENCE_SECONDS), "the gateway did not start"
    try:
        yield started[0]
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "the gateway did not stop"


@contextmanager
def embedded(
    directory: Path,
    now: Moment | None = None,
    survey: Survey = SCHEME.survey,
    elapsed: Moment | None = None,
) -> Iterator[EmbeddedLog]:
    """The log of `hearsay serve`, with a clock that is right unless another time has elapsed. A gateway closes it."""
    surveys, now = [survey], now or Moment()
    with closing(collector(directory, surveys, KEY, KEY)) as app:
        yield EmbeddedLog(app, surveys, now, elapsed or now)
