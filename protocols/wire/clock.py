"""Clock records, which close a survey through a period, and what that means for reports.

They are signed with the operator's key.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime

from protocols.survey.calendar import MAX_PERIOD, micros
from protocols.survey.model import Survey
from protocols.wire.content import Reason, Reject
from protocols.wire.header import read_hex, read_id, read_object, write_object

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
        if set(record) != {"survey", "through", "mac"}:
            raise ValueError("expected exactly the keys survey, through, mac")
        through = record["through"]
        if type(through) is not int or not -1 <= through <= MAX_PERIOD:
            raise ValueError("through is not the number of a period")
        clock, mac = Clock(read_id(record["survey"]), through), read_hex(record["mac"], 32, "mac")
    except ValueError as error:
        return Reject(Reason.UNDECODABLE, f"not a clock record: {error}")
    if not hmac.compare_digest(mac, bytes.fromhex(_mac(clock, key))):
        return Reject(Reason.BAD_MAC, "not made with the operator's key")
    return clock


def last_due(survey: Survey, now: datetime) -> int:
    """The last period whose end plus grace has passed; -1 if none has.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> hourly = parse_survey('''{id: s, start: 2026-01-01T00:00Z, period: 1h, grace: 30m, eps: 1,
    ...                           attributes: [{name: a, values: [x, y]}]}''')
    >>> [last_due(hourly, datetime.fromisoformat(f"2026-01-01T{time}Z")) for time in ("01:29", "01:30", "03:00")]
    [-1, 0, 1]
    """
    return max(min(survey.calendar.closed(micros(now), survey.grace), survey.calendar.last), -1)


def time_fault(survey: str, period: int, rows: int, through: int, ahead: int) -> Reject | None:
    """Why reports of a period are too late or too early, if it is closed `through` a period and open for `ahead` more.

    >>> time_fault("buttons", 3, 1, through=3, ahead=2).reason.value
    'late'
    """
    if period <= through:
        return Reject(Reason.LATE, f"period {period} is closed", survey, rows)
    if period > through + ahead:
        detail = f"period {period} is beyond {through + ahead}, the last one open"
        return Reject(Reason.TOO_FAR_AHEAD, detail, survey, rows)
    return None


def _mac(clock: Clock, key: bytes) -> str:
    message = clock.survey.encode() + b"\0" + clock.through.to_bytes(8, "big", signed=True)
    return hmac.new(key, b"hearsay clock\0" + message, hashlib.sha256).hexdigest()
