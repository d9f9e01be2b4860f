"""Which records can be counted together, because the result is the same as one by one.

Most of the cost of a record is per call. Frames for one period with the same columns count like one larger frame, if
their rows stay in order: of equal tokens the first counts. Frames for different periods are independent of each other.
Any other record (a clock record, a refused one) stays in its place among all others, and so does a late frame: it may
change the next period to close, like a frame for that period.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from protocols.wire import Clock, Frame, Reject
from stream_app.counting.judging import Record
from stream_app.counting.state import Period

Decoded = Clock | Frame | Reject
DecodedRecord = tuple[Record, Decoded]


def batches(
    records: Iterable[DecodedRecord], contained: int, is_late: Callable[[Frame], bool]
) -> Iterator[Sequence[DecodedRecord]]:
    """Records in the lists in which to count them: frames that are alike, or one record that is something else.

    Frames through the offset `contained` are being read again, to which other rules apply: each is a batch of its own.
    Each list must be counted before the next is asked for: a clock record decides which frames after it are late.
    """
    alike: dict[Period, list[tuple[Record, Frame]]] = {}
    for record, decoded in records:
        if isinstance(decoded, Frame) and record.offset > contained and not is_late(decoded):
            period = decoded.survey, decoded.period
            if period in alike and list(alike[period][0][1].answers) != list(decoded.answers):
                yield alike.pop(period)
            alike.setdefault(period, []).append((record, decoded))
        else:
            yield from alike.values()
            alike = {}
            yield [(record, decoded)]
    yield from alike.values()
