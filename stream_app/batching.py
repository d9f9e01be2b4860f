"""Which records can be counted together, because the result is the same as one by one.

The cost of a record is mostly a cost per call. Frames for one period with the same columns are like one larger frame,
if their rows stay in order: of equal tokens the first counts. Frames for different periods have nothing to do with one
another. All other records have to do with everything before and after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from protocols.wire import Clock, Frame, Reject
from stream_app.judging import Record
from stream_app.state import Period

Decoded = Clock | Frame | Reject
Taken = tuple[Record, Decoded]


def units(records: Iterable[Taken], contained: int) -> Iterator[list[Taken]]:
    """Records in the lists in which to count them: frames that are alike, or one record that is something else.

    Frames through the offset `contained` are being read again, by rules of their own: each is alone.
    """
    alike: dict[Period, list[Taken]] = {}
    columns: dict[Period, list[str]] = {}
    for record, decoded in records:
        if isinstance(decoded, Frame) and record.offset > contained:
            period, names = (decoded.survey, decoded.period), list(decoded.answers)
            if columns.setdefault(period, names) != names:
                yield alike.pop(period)
                columns[period] = names
            alike.setdefault(period, []).append((record, decoded))
        else:
            yield from alike.values()
            alike, columns = {}, {}
            yield [(record, decoded)]
    yield from alike.values()
