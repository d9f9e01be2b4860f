"""What a record of the reports topic is: a clock, a frame, or nothing that counts; and what becomes of the refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from protocols.scheme import Scheme
from protocols.wire import (
    CLOCK,
    CONTENT_TYPE_HEADER,
    FRAME,
    MAX_RECORD_BYTES,
    REPORT,
    ROW_REASONS,
    Clock,
    Frame,
    Lookup,
    Reason,
    Reject,
    decode_clock,
    decode_frame,
    decode_report,
    encode_frame,
    row_faults,
)
from stream_app.log.flushes import Output

LONGEST_HEADER = 200
KEPT_OF_TOO_LARGE = 64 << 10


@dataclass(frozen=True)
class Record:
    """One record of the reports topic, as it came; a record may have no content type and no value at all."""

    offset: int
    content_type: str | None
    value: bytes | None


@dataclass(frozen=True)
class Judged:
    """A frame whose rows have been looked at: the good ones, and the others by reason."""

    good: Frame
    bad: dict[Reason, Frame]


def decode(record: Record, lookup: Lookup, clock_key: bytes) -> Clock | Frame | Reject:
    """What a record is, or why it does not count. Never raises, whatever the bytes."""
    value = record.value or b""
    if record.content_type == FRAME:
        return decode_frame(value, lookup)
    if record.content_type == REPORT:
        return decode_report(value, lookup)
    if record.content_type == CLOCK:
        return _known(decode_clock(value, clock_key), lookup)
    return Reject(Reason.UNDECODABLE, f"no such content type; known are {FRAME}, {REPORT} and {CLOCK}")


def _known(clock: Clock | Reject, lookup: Lookup) -> Clock | Reject:
    """A clock record must be about a survey we know, and a time the calendar knows."""
    if isinstance(clock, Reject):
        return clock
    scheme = lookup(clock.survey)
    if scheme is None:
        return Reject(Reason.UNKNOWN_SURVEY, f"no survey {clock.survey!r} is published")
    try:
        scheme.survey.bounds(clock.through + scheme.survey.ahead)
    except OverflowError:
        return Reject(Reason.UNDECODABLE, f"period {clock.through} ends after the calendar does", clock.survey)
    return clock


def timely(frame: Frame, through: int, ahead: int) -> Reject | None:
    """Why a frame is out of time, where the survey is closed `through` a period and takes reports for `ahead` more."""
    if frame.period <= through:
        detail = f"period {frame.period} is closed"
        return Reject(Reason.LATE, detail, frame.survey, len(frame))
    if frame.period > through + ahead:
        detail = f"period {frame.period} is beyond {through + ahead}, the last one open"
        return Reject(Reason.TOO_FAR_AHEAD, detail, frame.survey, len(frame))
    return None


def judge_rows(frame: Frame, scheme: Scheme, partition: int, partitions: int) -> Judged:
    """Good rows count, bad ones cost only themselves. Repeats are told from the tokens seen, not here."""
    faults = row_faults(frame, scheme, partition, partitions)
    if not faults.any():
        return Judged(frame, {})
    bad = {reason: np.flatnonzero(faults == code) for code, reason in enumerate(ROW_REASONS, start=1)}
    return Judged(frame.take(faults == 0), {reason: frame.take(rows) for reason, rows in bad.items() if len(rows)})


def refused_record(record: Record, reject: Reject, partition: int) -> Output:
    """The dead letter of a whole record: its bytes as they came (the beginning of one that is too large)."""
    value = record.value or b""
    kept = value[:KEPT_OF_TOO_LARGE] if reject.reason is Reason.TOO_LARGE else value
    content_type = "" if record.content_type is None else record.content_type[:LONGEST_HEADER]
    return _dead_letter(record.offset, partition, reject, content_type, kept, len(value))


def refused_rows(judged: Judged, scheme: Scheme, offset: int, partition: int) -> Iterator[Output]:
    """The dead letters of bad rows: for each reason one frame, or more where one might not fit in a record."""
    for reason, frame in judged.bad.items():
        width = frame.tokens.itemsize + frame.gaps.itemsize + sum(c[:1].nbytes for c in frame.answers.values())
        step = max(1, MAX_RECORD_BYTES // 2 // width)  # an encoding of ours may be larger than the sender's
        for start in range(0, len(frame), step):
            rows = frame.take(slice(start, start + step))
            value = encode_frame(rows, scheme)
            reject = Reject(reason, f"{len(rows)} rows of a frame", frame.survey, len(rows))
            yield _dead_letter(offset, partition, reject, FRAME, value, len(value), start // step)


def _dead_letter(
    offset: int, partition: int, reject: Reject, content_type: str, value: bytes, size: int, number: int = 0
) -> Output:
    headers = {
        CONTENT_TYPE_HEADER: content_type,
        "reason": reject.reason.value,
        "detail": reject.detail[:LONGEST_HEADER],
        "survey": reject.survey or "",
        "rows": str(reject.rows),
        "partition": str(partition),
        "offset": str(offset),
        "bytes": str(size),
    }
    encoded = tuple((name, text.encode("utf-8", "replace")) for name, text in headers.items())
    key = f"{partition}/{offset}/{reject.reason.value}" + (f"/{number}" if number else "")
    return Output("deadletters", key.encode(), value, encoded)
