"""Taking reports: one, a JSON array, lines of JSON, or a frame. Each report is judged on its own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import structlog

from gateway.door.canonical import Forms
from gateway.door.credentials import Credential, credential_token
from gateway.door.judging import Door
from gateway.http.messages import Answer, Request, refusal
from gateway.service.answers import Ticket, many, row_reject, rows, single
from gateway.service.senders import ONE_REPORT
from gateway.service.writing import Writer
from protocols.errors import StateError
from protocols.scheme import Scheme
from protocols.wire import Frame, Reason, Reject, ReportHeader, ReportRow, decode_frame, read_json, row_of

MOST_REPORTS = 5_000
BUSY = refusal(503, "unavailable", "the gateway waits for its log; send the same again later", ("retry-after", "1"))
NO_KEY = refusal(
    503, "unavailable", "this gateway has no key for credentials in this period; send it again", ("retry-after", "60")
)
NOT_BY_DEVICES = refusal(
    403,
    "forbidden",
    "a survey with clock: source takes reports from edges only: no gateway is told when its periods are closed",
)
UNKNOWN = bytes(8)
"""Instead of a credential's token: all credentials are one, where there is no key."""
NDJSON = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl"})
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Reports:
    """The two routes that take reports."""

    door: Door
    writer: Writer
    keys: Callable[[ReportHeader], bytes | None]
    forms: Forms = field(default_factory=Forms)

    def take(self, request: Request, credential: Credential | None, answer: Answer) -> None:
        """`POST /v1/reports`."""
        in_lines = request.state in NDJSON
        known = None if in_lines else self.forms.read(request.body)
        if known is None and self._take_alike(request.body, in_lines, credential, answer):
            return
        try:
            content: Any = known or (read_lines(request.body) if in_lines else read_json(request.body))
        except ValueError as error:
            self._refuse(Reject(Reason.UNDECODABLE, f"not a report: {error}"), answer)
            return
        several, by_device = isinstance(content, list), credential is not None and credential.role == "device"
        records: list[Any] = content if several else [content]
        if several and by_device:
            answer(ONE_REPORT)
        elif not 0 < len(records) <= MOST_REPORTS:
            detail = f"1 to {MOST_REPORTS} reports are taken in a request"
            answer(refusal(422, Reason.TOO_LARGE if records else Reason.UNDECODABLE, detail))
        elif not self.writer.has_room(len(records)):
            answer(BUSY)
        else:
            ticket = Ticket(len(records), lambda results: answer(many(results) if several else single(results[0])))
            for place, record in enumerate(records):
                row = self._judged(record)
                if isinstance(row, Reject):
                    self._count(row)
                    ticket.settle(place, [row])
                    continue
                scheme = self.door.lookup(row.header.survey)
                assert scheme is not None
                if credential is not None and by_device:
                    row = row._replace(token=self._token(row.header, scheme, credential))
                    if row.token == UNKNOWN:
                        answer(NO_KEY if scheme.survey.clock == "wall" else NOT_BY_DEVICES)
                        return
                self.writer.add(row, scheme, ticket, place, self._edge(row.header, scheme, credential))

    def _edge(self, header: ReportHeader, scheme: Scheme, credential: Credential | None) -> bytes:
        """By which name the reports of an edge are held; empty for all others, and where nothing is held."""
        if credential is None or credential.role != "edge" or self.writer.holder is None:
            return b""
        return self._token(header, scheme, credential)

    def _token(self, header: ReportHeader, scheme: Scheme, credential: Credential) -> bytes:
        """The token of a credential in a period; `UNKNOWN` without a key."""
        try:
            key = self.keys(header) if scheme.survey.clock == "wall" else None
        except StateError as error:
            log.error("no key can be made", error=error.message, hint=error.hint)
            key = None
        return UNKNOWN if key is None else credential_token(key, credential)

    def _take_alike(self, body: bytes, in_lines: bool, credential: Credential | None, answer: Answer) -> bool:
        """Take many reports that have one known form and may all be taken; False if they are something else."""
        if credential is not None and credential.role != "edge":
            return False
        frame = self.forms.read_many(body, in_lines)
        if frame is None or len(frame) > MOST_REPORTS or self.door.fault(frame, self.writer.now()) is not None:
            return False
        self._add_frame(frame, credential, Ticket(len(frame), lambda results: answer(many(results))), answer)
        return True

    def _add_frame(self, frame: Frame, credential: Credential | None, ticket: Ticket, answer: Answer) -> None:
        scheme = self.door.lookup(frame.survey)
        assert scheme is not None
        if self.writer.has_room(len(frame)):
            self.writer.add(frame, scheme, ticket, edge=self._edge(frame.header, scheme, credential))
        else:
            answer(BUSY)

    def take_frame(self, request: Request, credential: Credential | None, answer: Answer) -> None:
        """`POST /v1/frames`."""
        if credential is not None and credential.role != "edge":
            answer(ONE_REPORT)
            return
        frame = decode_frame(request.body, self.door.lookup)
        fault = frame if isinstance(frame, Reject) else self.door.fault(frame, self.writer.now())
        if fault is not None:
            self._refuse(fault, answer)
            return
        assert isinstance(frame, Frame)
        self._add_frame(frame, credential, Ticket(len(frame), lambda results: answer(rows(results))), answer)

    def _judged(self, record: Any) -> ReportRow | Reject:
        """A report of a known form, or from JSON, read strictly: then its form is remembered for the next ones."""
        row = record
        if not isinstance(row, ReportRow):
            if not isinstance(record, dict):
                return Reject(Reason.UNDECODABLE, "not a report: not a JSON object")
            row = row_of(record, self.door.lookup)
            if isinstance(row, Reject):
                return row
            scheme = self.door.lookup(row.header.survey)
            assert scheme is not None, "it was just read by it"
            self.forms.learn(row, scheme)
        fault = self.door.fault(row, self.writer.now())
        if fault is None and row.token == bytes(8):
            fault = row_reject(Reason.BAD_TOKEN, row.header.survey)
        return fault or row

    def _refuse(self, reject: Reject, answer: Answer) -> None:
        self._count(reject)
        answer(refusal(422, reject.reason, reject.detail))

    def _count(self, reject: Reject) -> None:
        scheme = None if reject.survey is None else self.door.lookup(reject.survey)
        self.writer.metrics.note(scheme, reject.reason.value, reject.rows)


def read_lines(body: bytes) -> list[Any]:
    """The values in lines of JSON; a line that is none stands for itself, and is refused as a report."""
    values: list[Any] = []
    for line in body.split(b"\n"):
        if len(values) > MOST_REPORTS:  # refused in any case
            break
        if line.strip():
            try:
                values.append(read_json(line))
            except ValueError:
                values.append(None)
    return values
