"""Single reports as JSON, for clients in other languages.

All numbers are fixed-width hexadecimal text, so that reports of one survey that answer the same attributes have the
same length, which reveals nothing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from protocols.scheme import Scheme
from protocols.wire.content import Reason, Reject
from protocols.wire.frame import Frame
from protocols.wire.header import Lookup, ReportHeader, read_hex, read_object

MAX_REPORT_BYTES = 256 << 10
_KEYS = {"survey", "fingerprint", "period", "token", "gap", "answers"}


class ReportRow(NamedTuple):
    """A report as it was read, not yet a column: its header, which attributes it answers, and its numbers as bytes."""

    header: ReportHeader
    answered: tuple[str, ...]
    token: bytes  # big-endian, as the gap
    gap: bytes
    answers: tuple[bytes, ...]

    @property
    def survey(self) -> str:
        return self.header.survey

    @property
    def period(self) -> int:
        return self.header.period


def decode_report(data: bytes, lookup: Lookup) -> Frame | Reject:
    """A frame of one row, or the reason why not. Never raises, whatever the bytes."""
    row = read_report(data, lookup)
    if isinstance(row, Reject):
        return row
    scheme = row.header.scheme(lookup)
    return scheme if isinstance(scheme, Reject) else rows_frame([row], scheme)


def read_report(data: bytes, lookup: Lookup) -> ReportRow | Reject:
    """A report that has the form of its survey, or the reason why not; its numbers are checked by `row_faults`."""
    if len(data) > MAX_REPORT_BYTES:
        return Reject(Reason.TOO_LARGE, f"{len(data)} bytes; at most {MAX_REPORT_BYTES}")
    try:
        record = read_object(data)
    except ValueError as error:
        return Reject(Reason.UNDECODABLE, f"not a report: {error}")
    return row_of(record, lookup)


def row_of(record: dict[str, Any], lookup: Lookup) -> ReportRow | Reject:
    """The same for an object that was read from JSON."""
    try:
        if record.keys() not in (_KEYS, _KEYS - {"gap"} | {"flags"}):
            raise ValueError(f"expected exactly the keys {', '.join(sorted(_KEYS))}")
        header = ReportHeader.read(record)
    except ValueError as error:
        return Reject(Reason.UNDECODABLE, f"not a report: {error}")
    scheme = header.scheme(lookup)
    if isinstance(scheme, Reject):
        return scheme
    try:
        return _typed(record, header, scheme)
    except ValueError as error:
        return Reject(Reason.UNDECODABLE, str(error), header.survey)


def _typed(record: dict[str, Any], header: ReportHeader, scheme: Scheme) -> ReportRow:
    visits = scheme.visits
    if visits.column not in record:
        raise ValueError(f"a report of this survey has the key {visits.column}")
    token, gap = read_hex(record["token"], 8, "token"), record[visits.column]
    gap = read_hex(gap, visits.wire.itemsize, visits.column)
    answers, widths = record["answers"], scheme.answer_bytes
    if not isinstance(answers, dict) or not answers.keys() <= widths.keys():
        raise ValueError("answers is not an object of the survey's attributes")
    answered = tuple(name for name in widths if name in answers)
    if answered not in scheme.forms:
        raise ValueError(f"a report of this survey {scheme.forms_in_words}")
    columns = tuple(read_hex(answers[name], widths[name], name) for name in answered)
    return ReportRow(header, answered, token, gap, columns)


def rows_frame(rows: Sequence[ReportRow], scheme: Scheme) -> Frame:
    """Rows with the same header that answer the same attributes, as one frame, in the order given."""
    header, answered, *_ = rows[0]
    tokens = np.frombuffer(b"".join([row.token for row in rows]), dtype=">u8").astype(np.uint64)
    gaps = scheme.visits.read(b"".join([row.gap for row in rows]))
    columns = {}
    for place, name in enumerate(answered):
        raw = np.frombuffer(b"".join([row.answers[place] for row in rows]), dtype=np.uint8)
        columns[name] = scheme.question(name).mechanism.encoding.answer.from_bytes(raw)
    return Frame(header.survey, header.fingerprint, header.period, tokens, gaps, columns)
