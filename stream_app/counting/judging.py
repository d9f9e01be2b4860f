"""What a record of the reports topic is: a clock record, a frame, or a reject; and the dead letters of rejects.

And which records can be counted together, because the result is the same as one by one. Most of the cost of a record is
per call. Frames for one period with the same columns count like one larger frame, if their rows stay in order: of equal
tokens the first counts. A single report counts like a frame of one row. Frames for different periods are independent of
each other. Any other record (a clock record, a refused one) stays in its place among all others, and so does a late
frame: it may change the next period to close, like a frame for that period.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeGuard

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
    ReportRow,
    decode_clock,
    decode_frame,
    encode_frame,
    join_frames,
    read_report,
    row_faults,
    rows_frame,
)
from stream_app.counting.state import Period
from stream_app.log.flushes import DEADLETTERS, Output, Write
from stream_app.log.marks import NO_EPOCH, Skipped, Why

LONGEST_HEADER = 200
KEPT_OF_TOO_LARGE = 64 << 10
KEPT_OF_REFUSED = 1 << 10
"""How much is kept of a dead letter that the broker refuses: less than any broker allows."""


@dataclass(frozen=True)
class Record:
    """One record of the reports topic, as it was read; it may have no content type and no value at all."""

    offset: int
    content_type: str | None
    value: bytes | None
    epoch: int = field(default=NO_EPOCH, compare=False)  # the leader epoch of its batch; in files, its checksum


@dataclass(frozen=True)
class Judged:
    """The rows of a frame: the good ones, and the bad ones by reason."""

    good: Frame
    bad: dict[Reason, Frame]


def decode(record: Record, lookup: Lookup, clock_key: bytes) -> Clock | Frame | ReportRow | Reject:
    """What a record is, or why it does not count. Never raises, whatever the bytes.

    A single report stays a row: many of them make one frame in much less time than a frame each takes.
    """
    value = record.value or b""
    if record.content_type == FRAME:
        return decode_frame(value, lookup)
    if record.content_type == REPORT:
        return read_report(value, lookup)
    if record.content_type == CLOCK:
        return _known(decode_clock(value, clock_key), lookup)
    return Reject(Reason.UNDECODABLE, f"no such content type; known are {FRAME}, {REPORT} and {CLOCK}")


def _known(clock: Clock | Reject, lookup: Lookup) -> Clock | Reject:
    """A clock record must name a published survey, and a period that ends within the calendar."""
    if isinstance(clock, Reject):
        return clock
    scheme = lookup(clock.survey)
    if scheme is None:
        return Reject(Reason.UNKNOWN_SURVEY, f"no survey {clock.survey!r} is published")
    try:
        survey = scheme.survey
        survey.bounds(max(clock.through, min(clock.through + survey.ahead, survey.calendar.last)))
    except OverflowError:
        return Reject(Reason.UNDECODABLE, f"period {clock.through} ends after the calendar does", clock.survey)
    return clock


def refused_skip(skipped: Skipped) -> tuple[Record, Reject] | None:
    """Offsets that were skipped as one refused record without a value; None if there never were reports in them."""
    if skipped.why not in (Why.TOO_LARGE, Why.UNDECODABLE):
        return None
    how = "takes more memory than is allowed" if skipped.why is Why.TOO_LARGE else "cannot be read"
    detail = f"the batch with the records {skipped.first} to {skipped.last} {how}"
    return Record(skipped.first, None, None), Reject(Reason(skipped.why), detail, rows=skipped.last - skipped.first + 1)


def judge_rows(frame: Frame, scheme: Scheme, partition: int, partitions: int) -> Judged:
    """Separate good rows from bad ones. Repeats are not found here, but by the tokens of the period."""
    faults = row_faults(frame, scheme, partition, partitions)
    if not faults.any():
        return Judged(frame, {})
    bad = {reason: np.flatnonzero(faults == code) for code, reason in enumerate(ROW_REASONS, start=1)}
    return Judged(frame.take(faults == 0), {reason: frame.take(rows) for reason, rows in bad.items() if len(rows)})


def refused_record(record: Record, reject: Reject, partition: int) -> Output:
    """The dead letter of a whole record: its bytes unchanged (of one that is too large, the beginning).

    The header `bytes` says how many they were.
    """
    value = record.value or b""
    too_large = reject.reason is Reason.TOO_LARGE or len(value) > MAX_RECORD_BYTES  # or of no known content type
    kept = value[:KEPT_OF_TOO_LARGE] if too_large else value
    content_type = "" if record.content_type is None else record.content_type[:LONGEST_HEADER]
    return _dead_letter(record.offset, partition, reject, content_type, kept, len(value))


def refused_rows(judged: Judged, scheme: Scheme, offset: int, partition: int) -> Iterator[Output]:
    """The dead letters of bad rows: for each reason one frame, or more where one might not fit in a record."""
    for reason, frame in judged.bad.items():
        for number, rows in enumerate(frame.parts()):  # an encoding of ours may be larger than the sender's
            value = encode_frame(rows, scheme)
            reject = Reject(reason, f"{len(rows)} rows of a frame", frame.survey, len(rows))
            yield _dead_letter(offset, partition, reject, FRAME, value, len(value), number)


def is_letter(item: Write | Output) -> TypeGuard[Output]:
    return isinstance(item, Output) and item.topic == DEADLETTERS


def shortened(letter: Output) -> Output:
    """A dead letter of which a broker refuses more than the beginning."""
    return replace(letter, value=letter.value[:KEPT_OF_REFUSED])


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
    return Output(DEADLETTERS, key.encode(), value, encoded)


Counted = Frame | ReportRow
Decoded = Clock | Counted | Reject
DecodedRecord = tuple[Record, Decoded]


def batches(
    records: Iterable[DecodedRecord], contained: int, is_late: Callable[[Counted], bool]
) -> Iterator[Sequence[DecodedRecord]]:
    """Records in the lists in which to count them: frames that are alike, or one record that is something else.

    Frames through the offset `contained` are being read again, to which other rules apply: each is a batch of its own.
    Each list must be counted before the next is asked for: a clock record decides which frames after it are late.
    """
    alike: dict[Period, list[tuple[Record, Counted]]] = {}
    for record, decoded in records:
        if isinstance(decoded, Frame | ReportRow) and record.offset > contained and not is_late(decoded):
            period = decoded.survey, decoded.period
            if period in alike and alike[period][0][1].answered != decoded.answered:
                yield alike.pop(period)
            alike.setdefault(period, []).append((record, decoded))
        else:
            yield from alike.values()
            alike = {}
            yield [(record, decoded)]
    yield from alike.values()


def joined(parts: Iterable[Counted], scheme: Scheme) -> Frame:
    """Frames and single reports of one period, with the same columns, as one frame; rows stay in order."""
    frames: list[Frame] = []
    for _, run in groupby(parts, key=type):
        listed = list(run)
        rows = [part for part in listed if isinstance(part, ReportRow)]
        frames += [rows_frame(rows, scheme)] if rows else [part for part in listed if isinstance(part, Frame)]
    return frames[0] if len(frames) == 1 else join_frames(frames)
