"""Clock records: `survey` is closed through period `through`. They are signed with the operator's key."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

from protocols.survey.model import MAX_PERIOD
from protocols.wire.header import read_hex, read_id
from protocols.wire.reasons import Reason, Reject
from protocols.wire.strict_json import read_object, write_object

MAX_CLOCK_BYTES = 4096


@dataclass(frozen=True)
class Clock:
    """No report for `through` or an earlier period counts after this record.

    >>> decode_clock(encode_clock(Clock("buttons", 3), b"operator's key"), b"operator's key")
    Clock(survey='buttons', through=3)
    >>> decode_clock(encode_clock(Clock("buttons", 3), b"operator's key"), b"another").reason
    <Reason.BAD_MAC: 'bad-mac'>
    """

    survey: str
    through: int


def encode_clock(clock: Clock, key: bytes) -> bytes:
    return write_object({"survey": clock.survey, "through": clock.through, "mac": _mac(clock, key)})


def decode_clock(data: bytes, key: bytes) -> Clock | Reject:
    """The clock record, or the reason why not. Never raises, whatever the bytes."""
    if len(data) > MAX_CLOCK_BYTES:
        return Reject(Reason.TOO_LARGE, f"{len(data)} bytes; at most {MAX_CLOCK_BYTES}")
    try:
        clock, mac = _typed(read_object(data))
    except ValueError as error:
        return Reject(Reason.UNDECODABLE, f"not a clock record: {error}")
    if not hmac.compare_digest(mac, bytes.fromhex(_mac(clock, key))):
        return Reject(Reason.BAD_MAC, "not made with the operator's key")
    return clock


def _typed(record: dict[str, Any]) -> tuple[Clock, bytes]:
    if set(record) != {"survey", "through", "mac"}:
        raise ValueError("expected exactly the keys survey, through, mac")
    through = record["through"]
    if type(through) is not int or not -1 <= through <= MAX_PERIOD:
        raise ValueError("through is not the number of a period")
    return Clock(read_id(record["survey"]), through), read_hex(record["mac"], 32, "mac")


def _mac(clock: Clock, key: bytes) -> str:
    message = clock.survey.encode() + b"\0" + clock.through.to_bytes(8, "big", signed=True)
    return hmac.new(key, b"hearsay clock\0" + message, hashlib.sha256).hexdigest()
