"""Which records can be counted together, because the result is the same as one by one.

Most of the cost of a record is per call. Frames for one period with the same columns count like one larger frame, if
their rows stay in order: of equal tokens the first counts. A single report counts like a frame of one row. Frames for
different periods are independent of each other. Any other record (a clock record, a refused one) stays in its place
among all others, and so does a late frame: it may change the next period to close, like a frame for that period.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from protocols.scheme import Scheme
from protocols.wire import Clock, Frame, Reject, ReportRow, join_frames, rows_frame
from stream_app.counting.judging import Record
from stream_app.counting.state import Period

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
