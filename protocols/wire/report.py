"""Single reports as JSON, for clients in other languages.

All numbers are fixed-width hexadecimal text, so that reports of one survey that answer the same attributes have the
same length, which reveals nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from protocols.errors import WireError
from protocols.scheme import Scheme
from protocols.wire.frame import Frame
from protocols.wire.header import Lookup, ReportHeader, read_hex
from protocols.wire.reasons import Reason, Reject
from protocols.wire.strict_json import read_object, write_object

MAX_REPORT_BYTES = 256 << 10
_KEYS = {"survey", "fingerprint", "period", "token", "gap", "answers"}


def encode_report(frame: Frame, scheme: Scheme) -> bytes:
    """A frame of one row as a JSON report."""
    if len(frame) != 1:
        raise WireError(f"a single report of {len(frame)} rows", "send a frame instead")
    answers = {
        name: scheme.question(name).mechanism.encoding.answer.to_bytes(column).tobytes().hex()
        for name, column in frame.answers.items()
    }
    numbers = {"token": f"{int(frame.tokens[0]):016x}", "gap": f"{int(frame.gaps[0]):04x}"}
    return write_object({**frame.header.write(), **numbers, "answers": answers})


def decode_report(data: bytes, lookup: Lookup) -> Frame | Reject:
    """A frame of one row, or the reason why not. Never raises, whatever the bytes."""
    if len(data) > MAX_REPORT_BYTES:
        return Reject(Reason.TOO_LARGE, f"{len(data)} bytes; at most {MAX_REPORT_BYTES}")
    try:
        record = read_object(data)
        if set(record) != _KEYS:
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


def _typed(record: dict[str, Any], header: ReportHeader, scheme: Scheme) -> Frame:
    token = np.frombuffer(read_hex(record["token"], 8, "token"), dtype=">u8")
    gap = np.frombuffer(read_hex(record["gap"], 2, "gap"), dtype=">u2")
    answers = record["answers"]
    known = [question.name for question in scheme.questions]
    if not isinstance(answers, dict) or not set(answers) <= set(known):
        raise ValueError("answers is not an object of the survey's attributes")
    answered = tuple(name for name in known if name in answers)
    if answered not in scheme.forms:
        raise ValueError(f"a report of this survey {scheme.forms_in_words}")
    columns = {}
    for name in answered:
        layout = scheme.question(name).mechanism.encoding.answer
        columns[name] = layout.from_bytes(np.frombuffer(read_hex(answers[name], layout.bytes, name), dtype=np.uint8))
    tokens, gaps = token.astype(np.uint64), gap.astype(np.uint16)
    return Frame(header.survey, header.fingerprint, header.period, tokens, gaps, columns)
