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
from select import select
from time import monotonic
from typing import Any

import numpy as np

from hearsay.terminal.console import Step
from hearsay.terminal.dates import when
from lab.attacks.beside import padded
from lab.attacks.observed import Observed
from lab.attacks.reidentify import own_scheme
from lab.auditing.gateways import Request, gateway
from producers.scenarios import Scenario
from protocols.errors import SettingsError, WireError
from protocols.survey import Survey
from protocols.wire import Frame, decode_report

PATIENCE_SECONDS = 60
NUMBERS = ("number of requests", "length of requests", "time of the last request", "device's own clock")
ANSWERS = re.compile(rb'"answers"\s*:\s*\{[^}]*\}')
ANSWER = re.compile(rb'(?<=")[0-9a-f]+(?="\s*[,}])')


@dataclass
class Program:
    """Devices that are made by a program; its name is the command that starts it."""

    name: str
    keyring = None
    _runs: int = 0

    def observe(self, survey: Survey, people: Scenario, step: Step) -> Observed:
        self._runs += 1
        scheme = own_scheme(survey, f"audit.{self._runs}")
        observed = Observed(scheme, people.devices, people.periods)
        half, shape, refused = observed.restart, observed.present.shape, ""
        observed.around, requests = {name: np.zeros(shape) for name in NUMBERS}, np.full(shape, b"", dtype=object)
        with tempfile.TemporaryDirectory(prefix="hearsay-audit-") as states, gateway(scheme.terms) as (address, sent):
            fixed = {"gateway": address, "survey": scheme.survey.id}
            for span in filter(None, (range(half), range(half, people.periods))):
                with _started(self.name) as tell:
                    for period in span:
                        truth, at = people.presences(period), scheme.survey.bounds(period)[0].timestamp()
                        named = f"{self.name}, {when(scheme.survey.calendar, period)}"
                        observed.knows(period, truth.devices, truth.values)
                        for row, device in enumerate(truth.devices.tolist()):
                            step(period * people.devices + device, people.periods * people.devices, named)
                            values = {a.name: a.values[truth.values[a.name][row]] for a in survey.attributes}
                            sent.clear()
                            since = monotonic()
                            clock, said = tell({**fixed, "state": f"{states}/{device}", "at": at, "values": values})
                            refused = said or refused
                            requests[period, device] = _keep(observed, period, device, sent, since, clock - at)
        if not observed.present.any():
            message = f"no device sent a report that counts{refused and ': ' + refused}"
            raise SettingsError(message, "a program must allow what the survey reveals: docs/audit.md, Any device")
        observed.around["requests"] = padded(requests.ravel().tolist()).reshape(*shape, -1)
        return observed


@contextmanager
def _started(command: str) -> Iterator[Callable[[dict[str, Any]], tuple[float, str]]]:
    """A function that writes a line to the program, and returns what comes back: the device's clock, or a refusal."""
    try:
        process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except (OSError, ValueError) as error:
        raise SettingsError(f"--device {command!r} cannot be started: {error}", "give a program") from None
    assert process.stdin is not None and process.stdout is not None
    into, out = process.stdin, process.stdout

    def tell(line: dict[str, Any]) -> tuple[float, str]:
        try:
            done = json.loads(answer(process, json.dumps(line).encode(), PATIENCE_SECONDS))
            return float(done.get("at", line["at"])), str(done.get("refused", ""))
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


def _keep(observed: Observed, period: int, device: int, sent: list[Request], since: float, waited: float) -> bytes:
    """The reports of a device that was told at `since` to report, and everything beside their answers.

    `waited` is how long by its own clock. Returns its requests without answers.
    """
    length = sum(len(request.head) + len(request.body) for request in sent)
    last = sent[-1].seconds - since if sent else 0.0
    for name, number in zip(NUMBERS, (len(sent), length, last, waited), strict=True):
        observed.around[name][period, device] = number
    scheme = observed.scheme
    for body in (request.body for request in sent if request.body):
        frame = decode_report(body, {scheme.survey.id: scheme}.get)
        if not isinstance(frame, Frame):
            raise WireError(f"a report of the audited devices was refused: {frame.detail}", "docs/wire-format.md")
        if frame.period == period:
            observed.put(frame, np.array([device]))
    return b"".join(request.head + without_answers(request.body) for request in sent)


def without_answers(report: bytes) -> bytes:
    """A report with zeros for the digits of its answers.

    >>> without_answers(b'{"gap":"01","answers":{"a":"3f", "b":"00"}}')
    b'{"gap":"01","answers":{"a":"00", "b":"00"}}'
    """
    return ANSWERS.sub(lambda answers: ANSWER.sub(lambda digits: b"0" * len(digits[0]), answers[0]), report)
