"""Single reports as JSON, for clients in other languages.

All numbers are fixed-width hexadecimal text, so that reports of one survey that answer the same attributes have the
same length: an observer of the line learns nothing from it.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from protocols.errors import WireError
from protocols.scheme import Scheme
from protocols.wire.frame import Frame, Lookup
from protocols.wire.reasons import Reason, Reject

MAX_REPORT_BYTES = 64 << 10
_KEYS = {"survey", "fingerprint", "period", "token", "gap", "answers"}
_HEX = re.compile(r"[0-9a-f]*")


def encode_report(frame: Frame, scheme: Scheme) -> bytes:
    """A frame of one row as a JSON report."""
    if len(frame) != 1:
        raise WireError(f"a single report of {len(frame)} rows", "send a frame instead")
    answers = {
        name: scheme.question(name).mechanism.encoding.answer.to_bytes(column).tobytes().hex()
        for name, column in frame.answers.items()
    }
    record = {
        "survey": frame.survey,
        "fingerprint": frame.fingerprint,
        "period": f"{frame.period:08x}",
        "token": f"{int(frame.tokens[0]):016x}",
        "gap": f"{int(frame.gaps[0]):04x}",
        "answers": answers,
    }
    return json.dumps(record, separators=(",", ":")).encode()


def decode_report(data: bytes, lookup: Lookup) -> Frame | Reject:
    """A frame of one row, or the reason why not. Never raises, whatever the bytes."""
    if len(data) > MAX_REPORT_BYTES:
        return Reject(Reason.TOO_LARGE, f"{len(data)} bytes; at most {MAX_REPORT_BYTES}")
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return Reject(Reason.UNDECODABLE, "not JSON")
    if not isinstance(record, dict) or set(record) != _KEYS or not isinstance(record["survey"], str):
        return Reject(Reason.UNDECODABLE, f"expected exactly the keys {', '.join(sorted(_KEYS))}")
    survey = record["survey"]
    scheme = lookup(survey)
    if scheme is None:
        return Reject(Reason.UNKNOWN_SURVEY, f"no survey {survey!r} is published")
    if record["fingerprint"] != scheme.survey.fingerprint:
        return Reject(Reason.WRONG_FINGERPRINT, "made under other terms", survey)
    try:
        return _typed(record, scheme)
    except ValueError as error:
        return Reject(Reason.UNDECODABLE, str(error), survey)


def _typed(record: dict[str, Any], scheme: Scheme) -> Frame:
    answers = record["answers"]
    known = [question.name for question in scheme.questions]
    expected = [list(answers)] if isinstance(answers, dict) and scheme.discloses else [known]
    if not isinstance(answers, dict) or list(answers) not in expected or not set(answers) <= set(known):
        raise ValueError("answers are not those of the survey, in order")
    if scheme.discloses and len(answers) != 1:
        raise ValueError("a report of this survey answers exactly one of its attributes")
    columns = {}
    for name, text in answers.items():
        layout = scheme.question(name).mechanism.encoding.answer
        columns[name] = layout.from_bytes(np.frombuffer(_hex(text, layout.bytes, name), dtype=np.uint8))
    return Frame(
        scheme.survey.id,
        scheme.survey.fingerprint,
        int.from_bytes(_hex(record["period"], 4, "period"), "big"),
        np.array([int.from_bytes(_hex(record["token"], 8, "token"), "big")], dtype=np.uint64),
        np.array([int.from_bytes(_hex(record["gap"], 2, "gap"), "big")], dtype=np.uint16),
        columns,
    )


def _hex(text: Any, size: int, what: str) -> bytes:
    if not isinstance(text, str) or len(text) != 2 * size or not _HEX.fullmatch(text):
        raise ValueError(f"{what} is not {2 * size} lower-case hexadecimal digits")
    return bytes.fromhex(text)
