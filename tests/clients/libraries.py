"""Both device libraries under one face, so that one test runs against each: Python here, JavaScript in a process."""

import atexit
import json
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from hearsay_device import Device, DeviceError, Limits, Report, Sent
from lab.auditing.programs import answer
from tests.clients.cases import entropy_of
from tests.helpers.node import LIBRARY, PATIENCE_SECONDS, find_node

LIBRARIES = ("python", "javascript")
Opening = Callable[..., Any]


@dataclass
class Clock:
    """Seconds since 1970; waiting passes them. `start` names the start of the machine.

    `running`: for how long the machine runs; None: as long as there are clocks.
    """

    seconds: float = 0.0
    waited: list[float] = field(default_factory=list)
    start: str = "one"
    running: float | None = None

    def __call__(self) -> float:
        return self.seconds

    def uptime(self) -> tuple[str, float]:
        return self.start, self() if self.running is None else self.running

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.seconds += seconds


def open_device(
    library: str, path: Path, clock: Clock, limits: Limits | None = None, entropy: str | None = None
) -> Any:
    """A device of a library. `entropy` names what it draws from the system."""
    if library == "javascript":
        return JavaScriptDevice(path, clock, limits or Limits(), entropy)
    more: dict[str, Any] = {} if entropy is None else {"entropy": entropy_of(entropy)}
    return Device(path, limits=limits, now=clock, wait=clock.wait, uptime=clock.uptime, **more)


def stored(library: str, path: Path) -> dict[str, Any]:
    """The document that a device keeps."""
    text = path.read_text() if library == "javascript" else _document(path)
    return dict(json.loads(text))


def _document(path: Path) -> str:
    with closing(sqlite3.connect(path)) as base:
        return str(base.execute("select document from state").fetchone()[0])


def store(library: str, path: Path, document: dict[str, Any]) -> None:
    """Put another document into the file of a device that is not open."""
    text = json.dumps(document)
    if library == "javascript":
        path.write_text(text)
        return
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("update state set document = ?", (text,))


class Driver:
    """clients/javascript/tests/driver.js."""

    def __init__(self) -> None:
        command = [find_node(), str(LIBRARY / "tests" / "driver.js")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._opened = 0
        atexit.register(self.end)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=PATIENCE_SECONDS)

    def name(self) -> str:
        """Of one more device."""
        self._opened += 1
        return str(self._opened)

    def ask(self, *commands: list[Any]) -> list[dict[str, Any]]:
        """What came of each command."""
        line = answer(self._process, json.dumps(commands, default=_odd).encode(), PATIENCE_SECONDS)
        if not line.endswith(b"\n"):
            self.end()
            driver.cache_clear()
            raise AssertionError(f"the driver of the JavaScript library ended, or took {PATIENCE_SECONDS} s")
        return list(json.loads(line))


@cache
def driver() -> Driver:
    """One for all tests of this process."""
    return Driver()


def _odd(given: Any) -> Any:
    """Values that JSON cannot write have names."""
    return {"odd": "bytes" if isinstance(given, bytes) else "symbol"}


def _written(given: Any) -> Any:
    """NaN and infinity have names, too."""
    if isinstance(given, Mapping):
        return {name: _written(each) for name, each in given.items()}
    if isinstance(given, float) and not isfinite(given):
        return {"odd": "nan" if isnan(given) else "infinity"}
    return given


class JavaScriptDevice:
    """The methods of `hearsay_device.Device`, each of them a line to the driver and one back."""

    def __init__(self, path: Path, clock: Clock, limits: Limits, entropy: str | None) -> None:
        self._driver, self._clock = driver(), clock
        self._name = self._driver.name()
        self._done("open", {"path": str(path), "limits": limits._asdict(), "entropy": entropy})

    def _done(self, what: str, *given: Any) -> Any:
        start, running = self._clock.uptime()
        at = [] if what == "open" else [[self._name, "at", self._clock(), running, start]]
        outcome = self._driver.ask(*at, [self._name, what, *given])[-1]
        for seconds in outcome.get("waited") or ():
            self._clock.wait(seconds)
        if "refused" in outcome:
            error = DeviceError(outcome["refused"], outcome["message"])  # its message has the hint
            error.again_at = _seconds(outcome.get("againAt"))
            raise error
        return outcome.get("is")

    def send(
        self, url: str, survey: str, values: Any, *, timeout: float = 20.0, trust_first_use: bool = False, **more: Any
    ) -> Sent:
        options = {**more, "timeout": 1000 * timeout, "trustFirstUse": trust_first_use}
        sent = self._done("send", url, survey, _written(values), options)
        return Sent(
            sent["period"],
            sent["status"],
            tuple(sent["unlisted"]),
            tuple(sent["dropped"]),
            _seconds(sent["againAt"]),
            sent["doubt"],
        )

    def join(
        self,
        terms: bytes,
        *,
        pin: str | None = None,
        author: str | None = None,
        signature: str | None = None,
        trust_first_use: bool = False,
        credential: bool | None = None,
    ) -> str:
        options: dict[str, Any] = {"trustFirstUse": trust_first_use, "credential": credential}
        given = {"pin": pin, "author": author, "signature": signature}
        options |= {name: text for name, text in given.items() if text is not None}
        return str(self._done("join", terms.decode(), options))

    def preview(self, survey: str, values: Any) -> Report:
        return _report(self._done("preview", survey, _written(values)))

    def settle(self, survey: str, values: Any) -> Report:
        return _report(self._done("settle", survey, _written(values)))

    def owed(self, survey: str) -> list[Report]:
        return [_report(each) for each in self._done("owed", survey)]

    def forget_clock(self, survey: str) -> None:
        self._done("forgetClock", survey)

    def __getattr__(self, what: str) -> Callable[..., Any]:
        """What has the same name and arguments in both: confirm, leave, explain."""
        return partial(self._done, what)

    def check(self, terms: bytes, possible: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
        return dict(self._done("check", terms.decode(), possible))

    def close(self) -> None:
        pass

    def __enter__(self) -> "JavaScriptDevice":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _report(given: dict[str, Any]) -> Report:
    says = {name: tuple(values) for name, values in given["says"].items()}
    unlisted = tuple(given["unlisted"])
    return Report(given["period"], given["report"].encode(), says, unlisted, given["example"])


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
