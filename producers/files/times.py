"""Times in event files: ISO 8601, whole numbers since 1970, or formats that the user names. Everything else is bad.

The unit of a whole number follows from its size: below 10^11 they are seconds (up to the year 5138), then milliseconds
(from 1973 on), microseconds and nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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


def moments(column: pa.Array, zone: ZoneInfo | None, formats: Sequence[str] = ()) -> Moments:
    """Each cell's time, or BAD. Times without a zone are in `zone`; if that is None, they are bad.

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
    if not pa.types.is_string(column.type):
        return _typed(column, zone)
    try:
        return _typed(column.cast(_SHAPES[0][1]), zone)  # as most files have them
    except pa.ArrowInvalid:
        pass
    out = np.full(len(column), BAD)
    left = np.arange(len(column))
    for shape, kind in _SHAPES:
        cells = column.take(left)
        fits = np.asarray(pc.fill_null(pc.match_substring_regex(cells, shape), False))
        out[left[fits]] = _cast(cells.filter(pa.array(fits)), kind, zone)
        left = left[~fits]
    for form in formats:
        if len(left):
            found = formatted(column.take(left), form, zone)
            out[left] = found
            left = left[found == BAD]
    return out


def without_zone(column: pa.Array) -> int:
    """How many cells are times in ISO 8601 that have no zone."""
    if not pa.types.is_string(column.type):
        return len(column) if pa.types.is_timestamp(column.type) and column.type.tz is None else 0
    return int(pc.sum(pc.match_substring_regex(column, _SHAPES[1][0])).as_py() or 0)


def formatted(text: pa.Array, form: str, zone: ZoneInfo | None) -> Moments:
    """Cells in a format of `datetime.strptime`. Each different text is parsed once."""
    encoded = text.dictionary_encode()
    known = np.array([_parse(cell, form, zone) for cell in encoded.dictionary.to_pylist()], dtype=np.int64)
    return np.asarray(known[encoded.indices.to_numpy(zero_copy_only=False)])


def _parse(cell: str, form: str, zone: ZoneInfo | None) -> int:
    try:
        moment = datetime.strptime(cell, form)  # the zone is set below
    except ValueError:
        return int(BAD)
    if moment.tzinfo is None and zone is None:
        return int(BAD)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC).timestamp() * 10**6)


def _cast(text: pa.Array, kind: pa.DataType, zone: ZoneInfo | None) -> Moments:
    """Cells of the right shape. Invalid ones among them (February 30th) are found by bisection."""
    try:
        return _typed(text.cast(kind), zone)
    except pa.ArrowInvalid:
        if len(text) == 1:
            return np.array([BAD])
        half = len(text) // 2
        return np.concatenate([_cast(text[:half], kind, zone), _cast(text[half:], kind, zone)])


def _typed(column: pa.Array, zone: ZoneInfo | None) -> Moments:
    """Timestamps and whole numbers, in years of four digits. All values of other types are bad."""
    if pa.types.is_integer(column.type):
        column = _numbers(column.cast(pa.int64(), safe=False))
    if not pa.types.is_timestamp(column.type) or (column.type.tz is None and zone is None):
        return np.full(len(column), BAD)
    whole = column.cast(pa.int64())
    latest = min(LATEST * PER_SECOND[column.type.unit], MOST)
    sensible = pc.and_(pc.greater(whole, -latest), pc.less(whole, latest))
    column = pc.if_else(sensible, whole, None).cast(column.type)
    if column.type.tz is None:
        assert zone is not None
        column = pc.assume_timezone(column, zone.key, ambiguous="earliest", nonexistent="earliest")
    moments = column.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
    return np.asarray(pc.fill_null(moments, int(BAD)), dtype=np.int64)


def _numbers(column: pa.Array) -> pa.Array:
    """Whole numbers since 1970 in the unit that their size tells."""
    whole = np.asarray(pc.fill_null(column, 0), dtype=np.int64)
    size, moments = np.where(whole < 0, ~whole, whole), whole // 1000
    for below, microseconds in reversed(_UNITS):
        moments = np.where(size < below, whole * microseconds, moments)
    return pa.array(moments, pa.timestamp("us", "UTC"), mask=np.asarray(column.is_null()))
