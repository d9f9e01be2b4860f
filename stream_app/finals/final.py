"""The final of a period: what is released of it, for ever. Every result is made from finals and from nothing else.

A final is one Arrow record batch (an IPC stream, compressed with zstd) with a row for each table that is released:

    question    its name; "" are reports that answer nothing
    values      how many values it has
    gaps        the gaps, or flags, that have a row of counts, ascending; 0 stands for all of them together
    n           reports, one number for each gap
    supports    reports that support each value: for each gap, one number for each value
    widths      reports that support 0, 1 .. all values, of all gaps; empty where each supports one

The metadata of the schema say what it is about: `survey`, `fingerprint`, `period`, `refused` and `late` (what is not
counted), and `guarantees`. There are two versions:

    1   surveys that publish everything: counts are by gap or flags. With `visitors`, `units` has the sums of calendar
        units through this period, whose supports are in further rows, named after unit and question. With `central`
        all supports are in the row of the last gap or flags, and there are no widths and no supports of units.
    2   surveys with `publish_from` or `presence_epsilon`: counts are of all gaps together, and `windows` lists what is
        released of the windows that end with this period, whose tables are in further rows, named after the place of
        the window in this list, what the table counts, and the question. With noise, numbers may be negative, and
        `refused` and `late` are empty.

Integers have the smallest type that holds them. What is known of a period that is still open has the same form.
"""

from __future__ import annotations  # pyarrow is loaded when it is used, and not for a type

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from analytics.columns import ResultModel
from analytics.windows import Table, Tables, UnitSums, WindowNumbers, WindowSum
from protocols.arrays import lazy_arrow as pa
from protocols.errors import ResultsError
from protocols.scheme import Scheme
from protocols.survey import Unit
from protocols.wire import CONTENT_TYPE_HEADER
from stream_app.counting.counters import Counts, Statistics
from stream_app.finals.guarantees import published_guarantees
from stream_app.finals.reducing import NotCounted, at_most, reduced, rounded, totals
from stream_app.finals.windows import exact_windows
from stream_app.log.codec import Array
from stream_app.log.flushes import OPEN, Output, TopicName
from stream_app.log.marks import Loss

VERSION = 2
NOISED_BY_GAP = "agreed visitors"
"""The row that finals with noise had in release 0.2; attributes have no spaces in their names."""
FINAL_TYPE = "application/vnd.hearsay.final+arrow"
STATUS_TYPE = "application/vnd.hearsay.status+json"
NOTHING = np.zeros(0, dtype=np.int64)


class FinalKey(NamedTuple):
    """What a final, or a result made of it, describes: one period of a survey, or (without a period) the survey.

    >>> FinalKey("buttons", 12).encode(), FinalKey("buttons").encode(), FinalKey.decode(b"buttons/12")
    (b'buttons/12', b'buttons', FinalKey(survey='buttons', period=12))
    """

    survey: str
    period: int | None = None

    def encode(self) -> bytes:
        return (self.survey if self.period is None else f"{self.survey}/{self.period}").encode()

    @staticmethod
    def decode(key: bytes) -> FinalKey:
        survey, cut, period = key.decode().partition("/")
        return FinalKey(survey, int(period) if cut else None)


@dataclass(frozen=True, eq=False)
class Final:
    """One period of one survey as it may be published: counts of the questions that are released, and windows.

    `windows` is None where everything is published: then windows are made from counts by gap, and from `units`.
    """

    survey: str
    fingerprint: str
    period: int
    counts: Counts
    missing: NotCounted
    guarantees: str  # JSON of `PublishedGuarantees`
    units: UnitSums = field(default_factory=dict)  # sums of calendar units through this period
    windows: tuple[WindowNumbers, ...] | None = None
    superseded: bool = False  # release 0.2 has made it by another rule: what it published stays, nothing new is made

    @staticmethod
    def of(scheme: Scheme, period: int, counts: Counts, missing: NotCounted) -> Final:
        """The final of exact counts, which are reduced here; without windows of several periods."""
        threshold = scheme.survey.threshold
        found = reduced(counts, scheme)
        if scheme.survey.central is not None:
            found = totals(found)
        guarantees = published_guarantees(scheme).model_dump_json()
        windows = exact_windows(scheme, period, counts, {}) if threshold else None
        rounded = missing.rounded(threshold)
        return Final(scheme.survey.id, scheme.fingerprint, period, found, rounded, guarantees, windows=windows)

    @staticmethod
    def of_windows(scheme: Scheme, period: int, counts: Counts, windows: tuple[WindowNumbers, ...]) -> Final:
        """The final of released numbers. Exact numbers of late and refused rows would tell presence."""
        guarantees = published_guarantees(scheme).model_dump_json()
        return Final(scheme.survey.id, scheme.fingerprint, period, counts, NotCounted(), guarantees, windows=windows)

    def encode(self) -> bytes:
        about = {
            "version": 1 if self.windows is None else VERSION,
            "survey": self.survey,
            "fingerprint": self.fingerprint,
            "period": self.period,
            "by": "gaps",
            "refused": self.missing.refused,
            "late": json.dumps(dict(sorted(self.missing.late.items()))),
            "guarantees": self.guarantees,
        }
        rows = [_Row(name, found.N.shape[1], *found.arrays) for name, found in self.counts.items()]
        if self.units:
            about["units"] = json.dumps({unit: found.head for unit, found in self.units.items()})
            for unit, found in self.units.items():
                rows += [_Row(f"{unit} {name}", len(N), NOTHING, NOTHING, N, NOTHING) for name, N in found.N.items()]
        if self.windows is not None:
            about["windows"] = json.dumps([_window_head(window) for window in self.windows])
            for place, window in enumerate(self.windows):
                rows += _window_rows(place, window)
        return _arrow_stream(about, rows)

    @staticmethod
    def decode(data: bytes) -> Final:
        """Raises ResultsError if this is no final, or one of a later version."""
        try:
            with pa.ipc.open_stream(data) as stream:
                about = {key.decode(): text.decode() for key, text in stream.schema.metadata.items()}
                if int(about["version"]) > VERSION:
                    raise ResultsError(
                        f"a final has version {about['version']}; this program reads versions up to {VERSION}",
                        "upgrade hearsay here to the version of the workers that published it",
                    )
                rows = _rows(stream.read_next_batch())
            return _final(about, {row.question: row for row in rows})
        except (pa.ArrowInvalid, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise ResultsError(
                f"a record is no final: {error}", "was it written by another version, or by something else?"
            ) from None


def _final(about: Mapping[str, str], rows: Mapping[str, _Row]) -> Final:
    """A final from its metadata and its rows."""
    late = {int(period): reports for period, reports in json.loads(about["late"]).items()}
    missing = NotCounted(int(about["refused"]), late)
    terms = about["survey"], about["fingerprint"], int(about["period"])
    if about["by"] != "gaps" or NOISED_BY_GAP in rows:
        return Final(*terms, {}, missing, about["guarantees"], windows=(), superseded=True)
    units: dict[Unit, WindowSum] = {}
    for unit, head in json.loads(about.get("units", "{}")).items():
        named = f"{unit} "
        N = {name.removeprefix(named): row.supports for name, row in rows.items() if name.startswith(named)}
        units[unit] = WindowSum.of_head(head, N)
    windows = None
    if "windows" in about:
        heads = json.loads(about["windows"])
        windows = tuple(_window(place, head, rows) for place, head in enumerate(heads))
    counts = {name: _statistics(row) for name, row in rows.items() if " " not in name}
    return Final(*terms, counts, missing, about["guarantees"], units, windows)


def _window_head(window: WindowNumbers) -> dict[str, Any]:
    periods = {what: {name: table.periods for name, table in tables.items()} for what, tables in _tables(window)}
    return {**window.head, "periods": periods}


def _window_rows(place: int, window: WindowNumbers) -> list[_Row]:
    """The tables of a window; a single number of reports stands in place of those by gap."""
    rows = []
    for what, tables in _tables(window):
        for name, table in tables.items():
            n = np.array([table.n])
            rows.append(_Row(f"{place} {what} {name}", len(table.N), np.zeros_like(n), n, table.N, NOTHING))
    return rows


def _tables(window: WindowNumbers) -> list[tuple[str, Tables]]:
    return [("visits", window.visits), ("firsts", window.firsts)]


def _window(place: int, head: dict[str, Any], rows: Mapping[str, _Row]) -> WindowNumbers:
    numbers = {name: part for name, part in head.items() if name != "periods"}
    for what, periods in head["periods"].items():
        tables = {}
        for name, count in periods.items():
            row = rows[f"{place} {what} {name}"]
            tables[name] = Table(int(row.n[0]), row.supports, count)
        numbers[what] = tables
    return WindowNumbers(**numbers)


def _arrow_stream(about: Mapping[str, object], rows: Sequence[_Row]) -> bytes:
    columns = [
        pa.array([row.question for row in rows], pa.string()),
        pa.array([row.values for row in rows], pa.uint32()),
        *(_lists([getattr(row, field) for row in rows]) for field in LISTS),
    ]
    metadata = {name: str(value) for name, value in about.items()}
    batch = pa.record_batch(columns, names=_Row._fields, metadata=metadata)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def message(topic: TopicName, survey: str, period: int, value: bytes) -> Output:
    """A final, or what is known of an open period, as a message."""
    return Output(topic, FinalKey(survey, period).encode(), value, ((CONTENT_TYPE_HEADER, FINAL_TYPE.encode()),))


class _Row(NamedTuple):
    """One row of the record batch."""

    question: str
    values: int
    gaps: Array
    n: Array
    supports: Array
    widths: Array


LISTS = _Row._fields[2:]  # the columns with several numbers for each question


def _statistics(row: _Row) -> Statistics:
    return Statistics(row.gaps.astype(np.uint16), row.n, row.supports.reshape(len(row.gaps), row.values), row.widths)


def _rows(batch: pa.RecordBatch) -> list[_Row]:
    single = [batch[name].to_pylist() for name in ("question", "values")]
    return [_Row(*fields) for fields in zip(*single, *(_arrays(batch[name]) for name in LISTS), strict=True)]


def _lists(arrays: Sequence[Array]) -> pa.ListArray:
    """Arrays of integers as lists, of the smallest type that holds all of them."""
    flat = np.concatenate([np.zeros(0, dtype=np.uint8), *(array.ravel() for array in arrays)])
    ends = [0, int(flat.min()), int(flat.max())] if len(flat) else [0]
    smallest = np.result_type(*map(np.min_scalar_type, ends))
    offsets = np.cumsum([0, *(array.size for array in arrays)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat.astype(smallest)))


def _arrays(lists: Any) -> list[Array]:
    offsets, flat = lists.offsets.to_numpy(), lists.values.to_numpy().astype(np.int64)
    return [flat[begin:end] for begin, end in pairwise(offsets)]


class Status(ResultModel):
    """What the merge knows of a survey beside its finals: what is open of it, and what was refused.

    A new one replaces the one before. Counts of open periods are records of their own. Where the survey has
    `publish_from`, there are none, and all numbers of reports are multiples of it: a number that is rounded to 0 is
    left out, because its key would show that there is a report. Where the survey has presence_epsilon, the status says
    only what is closed.
    """

    survey: str
    closed_through: int = -1  # the last period closed in every partition; -1: none
    open: dict[int, int] = Field({})  # reports by period
    rejects: dict[str, int] = Field({})  # rows refused, by reason
    lates: dict[int, int] = Field({})  # late rows, by period
    lost: tuple[Loss, ...] = ()  # first and last period, and how many reports of them together at most

    def reduced(self, threshold: int) -> Status:
        """What may be published of it. The numbers of open periods are reduced already, by `open_reports`."""
        rejects = {reason: rounded(n, threshold) for reason, n in self.rejects.items()}
        lates = {period: rounded(n, threshold) for period, n in self.lates.items()}
        return Status(
            survey=self.survey,
            closed_through=self.closed_through,
            open={period: n for period, n in self.open.items() if n},
            rejects={reason: n for reason, n in rejects.items() if n},
            lates={period: n for period, n in lates.items() if n},
            lost=tuple(Loss(first, last, at_most(n, threshold)) for first, last, n in self.lost),
        )

    @property
    def message(self) -> Output:
        headers = ((CONTENT_TYPE_HEADER, STATUS_TYPE.encode()),)
        return Output(OPEN, FinalKey(self.survey).encode(), self.model_dump_json().encode(), headers)
