"""Which records can be counted together, because the result is the same as one by one.

The cost of a record is mostly a cost per call. Frames for one period with the same columns are like one larger frame,
if their rows stay in order: of equal tokens the first counts. Frames for different periods have nothing to do with one
another. All other records have to do with everything before and after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from protocols.wire import Clock, Frame, Reject
from stream_app.counting.judging import Record
from stream_app.counting.state import Period

Decoded = Clock | Frame | Reject
Taken = tuple[Record, Decoded]


def units(records: Iterable[Taken], contained: int) -> Iterator[Sequence[Taken]]:
    """Records in the lists in which to count them: frames that are alike, or one record that is something else.

    Frames through the offset `contained` are being read again, by rules of their own: each is alone.
    """
    alike: dict[Period, list[tuple[Record, Frame]]] = {}
    for record, decoded in records:
        if isinstance(decoded, Frame) and record.offset > contained:
            period = decoded.survey, decoded.period
            if period in alike and list(alike[period][0][1].answers) != list(decoded.answers):
                yield alike.pop(period)
            alike.setdefault(period, []).append((record, decoded))
        else:
            yield from alike.values()
            alike = {}
            yield [(record, decoded)]
    yield from alike.values()
