"""Times in event files: ISO 8601, whole numbers since 1970, or formats that the user names. Everything else is bad.

The unit of a whole number follows from its size: below 10^11 they are seconds (up to the year 5138), then milliseconds
(from 1973 on), microseconds and nanoseconds.

Times without a zone are what a clock on the wall showed. When clocks are put forward they skip local times, and when
they are put back they repeat some: the first are no times, the others are two.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from protocols.arrays import Mask

Moments = NDArray[np.int64]
"""Microseconds since 1970 in UTC."""
BAD, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
LATEST = 253_402_300_800  # the year 10000, in seconds
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LOCAL = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}(:\d{2}(:\d{2}(\.\d{1,9})?)?)?"
_SHAPES = (
    (_LOCAL + r"(Z|[+-]\d{2}(:?\d{2})?)$", pa.timestamp("ns", "UTC")),
    (_LOCAL + "$", pa.timestamp("ns")),
    (r"^\d{1,19}$", pa.int64()),
)
_UNITS = ((10**11, 10**6), (10**14, 10**3), (10**17, 1))  # below this size: microseconds in a unit
SECOND = 10**6


class Repeated(StrEnum):
    """Which one of two is meant by a local time that the clock repeats."""

    ORDER = "order"  # the one that is nearer to the time of the row before
    FIRST = "first"
    SECOND = "second"
    REFUSE = "refuse"  # neither: it is a fault


def read_times(
    column: pa.Array,
    zone: ZoneInfo | None,
    formats: Sequence[str] = (),
    offsets: pa.Array | None = None,
    meant: Repeated = Repeated.REFUSE,
    before: int = int(BAD),
) -> tuple[Moments, Mask, Mask]:
    """Each cell's time, or BAD; which of them are bad because the clock skips them; and which ones it repeats.

    Times without a zone are ahead of UTC by `offsets`, such as +02:00, or where these are empty, in `zone`. `before` is
    the time before the first row, or BAD. By order, a repeated time is bad if no time was known before, and rows may be
    out of order by up to half of what clocks are put back.

    >>> rows = pa.array([f"2026-10-25 {time}" for time in ("01:59", "02:10", "02:50", "02:00", "02:59", "02:20")])
    >>> time, _, repeated = read_times(rows, ZoneInfo("Europe/Paris"), meant=Repeated.ORDER)
    >>> ((time - time[0]) // 60_000_000).tolist(), repeated.tolist()
    ([0, 11, 51, 61, 60, 81], [False, True, True, True, True, True])
    """
    first, local = _parsed(column, formats)
    if offsets is not None:
        ahead = _offsets(offsets)
        told = local & (ahead != BAD) & (first != BAD)
        first, local = np.where(told, first - ahead, first), local & ~told
    if not local.any():
        none = np.zeros(len(first), dtype=bool)
        return first, none, none
    time, second = first.copy(), first.copy()
    time[local], second[local] = _instants(first[local], zone)
    apart = second - time
    skipped, repeated = (apart > 0) & (apart < SECOND), apart >= SECOND  # just before and after what is left out
    time[skipped] = BAD
    if meant is Repeated.ORDER:
        _choose_nearest(time, second, repeated, before)
    elif meant is not Repeated.FIRST:
        time[repeated] = second[repeated] if meant is Repeated.SECOND else BAD
    return time, skipped, repeated


def _choose_nearest(time: Moments, second: Moments, repeated: Mask, before: int) -> None:
    """Of repeated times, those that are nearer to the time of the row before."""
    known = np.maximum.accumulate(np.where(time != BAD, np.arange(len(time)), -1))
    for row in np.flatnonzero(repeated).tolist():
        place = known[row - 1] if row else -1
        near = time[place] if place >= 0 else before
        if near == BAD:
            time[row] = BAD
        elif abs(second[row] - near) < abs(time[row] - near):
            time[row] = second[row]


def moments(column: pa.Array, zone: ZoneInfo | None, formats: Sequence[str] = ()) -> Moments:
    """Each cell's time, or BAD; of those that the clock repeats, the first. Without a zone, local times are bad.

    >>> cells = ["2026-01-01T00:00:01Z", "2026-01-01 01:00:01.5+01:00", "1767225601", "2026-02-30T00:00:00Z", ""]
    >>> [int(m) if m != BAD else "bad" for m in moments(pa.array(cells), None)]
    [1767225601000000, 1767225601500000, 1767225601000000, 'bad', 'bad']
    >>> int(moments(pa.array(["2026-01-01T01:00:01"]), ZoneInfo("Europe/Paris"))[0])
    1767225601000000
    >>> moments(pa.array(["1767225601000", "1767225601000000"]), None).tolist()
    [1767225601000000, 1767225601000000]
    >>> int(moments(pa.array(["31/12/2025 23:59"]), ZoneInfo("UTC"), ["%d/%m/%Y %H:%M"])[0])
    1767225540000000
    """
    return read_times(column, zone, formats, meant=Repeated.FIRST)[0]


def _parsed(column: pa.Array, formats: Sequence[str]) -> tuple[Moments, Mask]:
    """Each cell's time, and which of them are those of a clock on the wall."""
    if not pa.types.is_string(column.type):
        return _typed(column), np.full(len(column), pa.types.is_timestamp(column.type) and column.type.tz is None)
    try:
        return _typed(column.cast(_SHAPES[0][1])), np.zeros(len(column), dtype=bool)  # as most files have them
    except pa.ArrowInvalid:
        pass
    out, local = np.full(len(column), BAD), np.zeros(len(column), dtype=bool)
    left = np.arange(len(column))
    for shape, kind in _SHAPES:
        cells = column.take(left)
        fits = np.asarray(pc.fill_null(pc.match_substring_regex(cells, shape), False))
        out[left[fits]] = _cast(cells.filter(pa.array(fits)), kind)
        local[left[fits]] = pa.types.is_timestamp(kind) and kind.tz is None
        left = left[~fits]
    for form in formats:
        if len(left):
            found = formatted(column.take(left), form)
            out[left], local[left] = found, "%z" not in form
            left = left[found == BAD]
    return out, local


def _instants(wall: Moments, zone: ZoneInfo | None) -> tuple[Moments, Moments]:
    """The first and the last instant at which clocks in a zone show these times; without a zone, they are bad."""
    if zone is None:
        return np.full(len(wall), BAD), np.full(len(wall), BAD)
    known = wall != BAD
    shown = pa.array(wall, pa.timestamp("us"), mask=~known)
    first, second = (
        pc.assume_timezone(shown, zone.key, ambiguous=which, nonexistent=which) for which in ("earliest", "latest")
    )
    return _whole(first), _whole(second)


def _offsets(column: pa.Array) -> Moments:
    """How far local time is ahead of UTC, by cells such as +02:00 and Z; BAD where a cell is something else."""
    began = moments(pc.binary_join_element_wise("1970-01-01T00:00:00.000000000", column, ""), None)
    return np.where(began == BAD, BAD, -began)


def without_zone(column: pa.Array) -> int:
    """How many cells are times in ISO 8601 that have no zone."""
    if not pa.types.is_string(column.type):
        return len(column) if pa.types.is_timestamp(column.type) and column.type.tz is None else 0
    return int(pc.sum(pc.match_substring_regex(column, _SHAPES[1][0])).as_py() or 0)


def formatted(text: pa.Array, form: str) -> Moments:
    """Cells in a format of `datetime.strptime`; without a zone, in UTC. Each different text is parsed once."""
    encoded = text.dictionary_encode()
    known = np.array([_parse(cell, form) for cell in encoded.dictionary.to_pylist()], dtype=np.int64)
    return np.asarray(known[encoded.indices.to_numpy(zero_copy_only=False)])


def _parse(cell: str, form: str) -> int:
    try:
        moment = datetime.strptime(cell, form)  # the zone is set below
    except ValueError:
        return int(BAD)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 10**6)


def _cast(text: pa.Array, kind: pa.DataType) -> Moments:
    """Cells of the right shape. Invalid ones among them (February 30th) are found by bisection."""
    try:
        return _typed(text.cast(kind))
    except pa.ArrowInvalid:
        if len(text) == 1:
            return np.array([BAD])
        half = len(text) // 2
        return np.concatenate([_cast(text[:half], kind), _cast(text[half:], kind)])


def _typed(column: pa.Array) -> Moments:
    """Timestamps and whole numbers, in years of four digits. All values of other types are bad."""
    if pa.types.is_integer(column.type):
        column = _numbers(column.cast(pa.int64(), safe=False))
    if not pa.types.is_timestamp(column.type):
        return np.full(len(column), BAD)
    whole = column.cast(pa.int64())
    latest = min(LATEST * PER_SECOND[column.type.unit], MOST)
    sensible = pc.and_(pc.greater(whole, -latest), pc.less(whole, latest))
    return _whole(pc.if_else(sensible, whole, None).cast(column.type))


def _whole(column: pa.Array) -> Moments:
    zone = column.type.tz
    moments = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    return np.asarray(pc.fill_null(moments, int(BAD)), dtype=np.int64)


def _numbers(column: pa.Array) -> pa.Array:
    """Whole numbers since 1970 in the unit that their size tells."""
    whole = np.asarray(pc.fill_null(column, 0), dtype=np.int64)
    size, moments = np.where(whole < 0, ~whole, whole), whole // 1000
    for below, microseconds in reversed(_UNITS):
        moments = np.where(size < below, whole * microseconds, moments)
    return pa.array(moments, pa.timestamp("us", "UTC"), mask=np.asarray(column.is_null()))
