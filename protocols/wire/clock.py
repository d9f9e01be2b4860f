"""Clock records: `survey` is closed through period `through`. Only the operator's key moves time."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from protocols.survey import MAX_PERIOD
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
        record = read_object(data)
    except ValueError as error:
        return Reject(Reason.UNDECODABLE, f"not a clock record: {error}")
    if set(record) != {"survey", "through", "mac"}:
        return Reject(Reason.UNDECODABLE, "expected exactly the keys survey, through, mac")
    survey, through, mac = record["survey"], record["through"], record["mac"]
    if not isinstance(survey, str) or type(through) is not int or not isinstance(mac, str):
        return Reject(Reason.UNDECODABLE, "survey and mac must be text, through a whole number")
    if not -1 <= through <= MAX_PERIOD:
        return Reject(Reason.UNDECODABLE, f"period {through} is out of range")
    clock = Clock(survey, through)
    if not hmac.compare_digest(mac.encode("utf-8", "replace"), _mac(clock, key).encode()):
        return Reject(Reason.BAD_MAC, "not made with the operator's key")
    return clock


def _mac(clock: Clock, key: bytes) -> str:
    message = clock.survey.encode("utf-8", "surrogatepass") + b"\0" + clock.through.to_bytes(8, "big", signed=True)
    return hmac.new(key, b"hearsay clock\0" + message, hashlib.sha256).hexdigest()
