"""Devices of a program that the audit knows nothing of (docs/audit.md, "Any device").

The audit starts the program, writes a line for each report that a device is to make, and sees what a gateway is sent.
"""

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from select import select
from shutil import disk_usage
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from hearsay.terminal.console import Step
from hearsay.terminal.dates import when
from lab.attacks.beside import padded
from lab.attacks.observed import Observed, Retry
from lab.attacks.reidentify import own_scheme
from lab.auditing.gateways import Request, gateway, refusing
from producers.scenarios import Scenario
from protocols.errors import SettingsError, WireError
from protocols.survey import NOTHING, Attribute, Survey
from protocols.wire import Frame, decode_report

PATIENCE_SECONDS = 60
LASTING = 1 / 3
"""The chance that a retry is refused, too."""
PAUSE_SECONDS = 60.0  # after which a device is called again, if it does not say when
MOST_CALLS = 8  # of a device in a period: so many refusals in a row do not happen by luck
STATE_BYTES = 128 << 10  # what a device keeps, at most
NUMBERS = ("number of requests", "length of requests", "time of the last request", "device's own clock")
ANSWERS = re.compile(rb'"answers"\s*:\s*\{[^}]*\}')
ANSWER = re.compile(rb'(?<=")[0-9a-f]+(?="\s*[,}])')


class Said(NamedTuple):
    """What a program wrote: the device's clock, why it refused, and when it wants to be called again."""

    at: float
    refused: str
    again_at: float | None


Tell = Callable[[dict[str, Any]], Said]
"""Writes a line to the program, and returns what comes back."""


@dataclass
class Program:
    """Devices that are made by a program; its name is the command that starts it.

    `refused`: the share of requests from which on the audit's gateway refuses, so that devices send again. Which ones
    they are follows from `seed`.
    """

    name: str
    refused: float = 0.0
    seed: int = 0
    keyring = None
    _runs: int = 0

    def observe(self, survey: Survey, people: Scenario, step: Step) -> Observed:
        self._runs += 1
        scheme = own_scheme(survey, f"audit.{self._runs}")
        seen = Seen(Observed(scheme, people.devices, people.periods))
        half = seen.observed.restart
        judge = refusing(self.refused, LASTING if self.refused else 0.0, self.seed)
        with _states(people.devices) as states, gateway(scheme.terms, judge) as (address, sent):
            for span in filter(None, (range(half), range(half, people.periods))):
                with _started(self.name) as tell:
                    visits = Visits(seen, people, tell, address, sent, states)
                    for period in span:
                        named = f"{self.name}, {when(scheme.survey.calendar, period)}"
                        visits.of_period(period, step, named)
        return seen.result()


class Seen:
    """What the audit sees of the devices of a program."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        self.said = ""  # why a device refused
        shape = observed.present.shape
        observed.around = {name: np.zeros(shape) for name in NUMBERS}
        self._requests = np.full(shape, b"", dtype=object)
        self._bodies = dict[tuple[int, int], bytes]()  # the first report of each period and device

    def put(self, period: int, device: int, sent: list[Request], since: float, waited: float) -> None:
        """What a device sent that was told at `since` to report; `waited` is how long by its own clock."""
        observed = self.observed
        length = sum(len(request.head) + len(request.body) for request in sent)
        last = sent[-1].seconds - since if sent else 0.0
        for name, number in zip(NUMBERS, (len(sent), length, last, waited), strict=True):
            observed.around[name][period, device] = number
        requests = []
        asked = False
        for request in sent:
            if request.body:
                first = self._put_report(request, device)
            else:
                first = not asked
                asked = True
            if first:
                requests.append(request.head + without_answers(request.body))
        self._requests[period, device] = b"".join(requests)

    def _put_report(self, request: Request, device: int) -> bool:
        """Whether it is the first attempt of its period. A later one must have the same bytes."""
        scheme = self.observed.scheme
        frame = decode_report(request.body, {scheme.survey.id: scheme}.get)
        if not isinstance(frame, Frame):
            raise WireError(f"a report of the audited devices was refused: {frame.detail}", "docs/wire-format.md")
        before = self._bodies.setdefault((frame.period, device), request.body)
        if before is not request.body:
            bare = request.head + without_answers(request.body)
            self.observed.retries.append(Retry(frame.period, device, before == request.body, bare))
            return False
        self.observed.put(frame, np.array([device]))
        return True

    def result(self) -> Observed:
        observed = self.observed
        if not observed.present.any():
            message = f"no device sent a report that counts{self.said and ': ' + self.said}"
            raise SettingsError(message, "a program must allow what the survey reveals: docs/audit.md, Any device")
        shape = observed.present.shape
        observed.around["requests"] = padded(self._requests.ravel().tolist()).reshape(*shape, -1)
        return observed


@dataclass
class Visits:
    """Tells devices to report, and to report again where the gateway did not take it."""

    seen: Seen
    people: Scenario
    tell: Tell
    address: str
    sent: list[Request]
    states: str

    def of_period(self, period: int, step: Step, named: str) -> None:
        """Every device, in their order."""
        survey = self.seen.observed.scheme.survey
        truth = self.people.presences(period)
        self.seen.observed.knows(period, truth.devices, truth.values)
        total = self.people.periods * self.people.devices
        for row, device in enumerate(truth.devices.tolist()):
            step(period * self.people.devices + device, total, named)
            values = {each.name: _told(each, truth.values[each.name][row]) for each in survey.attributes}
            self._visit(period, device, values)

    def _visit(self, period: int, device: int, values: dict[str, Any]) -> None:
        """One device, until its report was taken, or its period is over.

        It is told the time when it asked to be called again, or else a minute later.
        """
        survey = self.seen.observed.scheme.survey
        begin, end = (bound.timestamp() for bound in survey.bounds(period))
        line = {"gateway": self.address, "survey": survey.id, "state": f"{self.states}/{device}", "values": values}
        self.sent.clear()
        since = monotonic()
        at = begin
        for _ in range(MOST_CALLS):
            before = len(self.sent)
            said = self.tell({**line, "at": at})
            self.seen.said = said.refused or self.seen.said
            again = said.again_at
            if again is None and not all(request.taken for request in self.sent[before:]):
                again = said.at + PAUSE_SECONDS
            if again is None or again >= end:
                break
            at = again
        self.seen.put(period, device, self.sent, since, said.at - begin)


def _told(attribute: Attribute, place: Any) -> Any:
    """A value as an app gives it; of a set the list of its values."""
    if attribute.several is None:
        return attribute.values[place]
    return [attribute.values[each] for each in place.tolist() if each != NOTHING]


@contextmanager
def _states(devices: int) -> Iterator[str]:
    """A folder for what devices keep: in memory where there is room. Nothing of it has to survive."""
    memory = Path("/dev", "shm")
    roomy = memory.is_dir() and disk_usage(memory).free > 2 * devices * STATE_BYTES
    with tempfile.TemporaryDirectory(prefix="hearsay-audit-", dir=memory if roomy else None) as states:
        yield states


@contextmanager
def _started(command: str) -> Iterator[Tell]:
    """A program that runs as long as it is told something."""
    try:
        process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except (OSError, ValueError) as error:
        raise SettingsError(f"--device {command!r} cannot be started: {error}", "give a program") from None
    assert process.stdin is not None and process.stdout is not None
    into, out = process.stdin, process.stdout

    def tell(line: dict[str, Any]) -> Said:
        try:
            done = json.loads(answer(process, json.dumps(line).encode(), PATIENCE_SECONDS))
            again_at = done.get("again_at")
            at = float(done.get("at", line["at"]))
            return Said(at, str(done.get("refused", "")), None if again_at is None else float(again_at))
        except (OSError, ValueError, TypeError, AttributeError) as error:
            hint = f"it must write a JSON object for each line within {PATIENCE_SECONDS} s: docs/audit.md, Any device"
            raise SettingsError(f"--device {command!r} did not answer: {error}", hint) from None

    try:
        yield tell
    finally:
        with suppress(OSError):
            into.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_SECONDS)
        process.kill()
        process.wait()
        out.close()


def answer(process: subprocess.Popen[bytes], line: bytes, seconds: float) -> bytes:
    """The line that a process writes for a line; without its end if the process ended or is silent for so long."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line + b"\n")
    process.stdin.flush()
    read = b""
    while not read.endswith(b"\n") and select([process.stdout], [], [], seconds)[0]:
        part = os.read(process.stdout.fileno(), 1 << 20)
        if not part:
            break
        read += part
    return read


def without_answers(report: bytes) -> bytes:
    """A report with zeros for the digits of its answers.

    >>> without_answers(b'{"gap":"01","answers":{"a":"3f", "b":"00"}}')
    b'{"gap":"01","answers":{"a":"00", "b":"00"}}'
    """
    return ANSWERS.sub(lambda answers: ANSWER.sub(lambda digits: b"0" * len(digits[0]), answers[0]), report)
