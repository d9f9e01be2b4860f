"""The final of a period: what is released of it, for ever. Every result is made from finals and from nothing else.

A final is one Arrow record batch (an IPC stream, compressed with zstd) with a row for each question that is released:

    question    its name; "" are reports that answer nothing, AGREED are the visitors of a survey with presence_epsilon
    values      how many values it has
    gaps        the gaps that have a row of counts, ascending; with `by: ranges`, the first gap of each range
    n           reports, one number for each gap
    supports    reports that support each value: for each gap, one number for each value
    widths      reports that support 0, 1 .. all values, of all gaps; empty where each supports one

The metadata of the schema say what it is about: `survey`, `fingerprint`, `period`, `by` (gaps or ranges), `refused` and
`late` (what is not counted), and `guarantees`. In a survey with `visitors`, flags are in place of gaps, and `units` has
the sums of calendar units through this period, whose supports are in further rows, named after unit and question.
Integers have the smallest type that holds them. With presence_epsilon all numbers have noise and may be negative,
supports are those of all gaps, and `refused` and `late` are empty. With `central` all supports are in the row of the
last gap or flags, and there are no widths and no supports of units.

What is known of a period that is still open has the same form.
"""

from __future__ import annotations  # pyarrow is loaded when it is used, and not for a type

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from analytics.columns import ResultModel
from analytics.windows import Agreed, UnitSum, UnitSums
from protocols.arrays import lazy_arrow as pa
from protocols.errors import ResultsError
from protocols.scheme import Scheme
from protocols.wire import CONTENT_TYPE_HEADER
from stream_app.counting.counters import Counts, Statistics
from stream_app.finals.guarantees import published_guarantees
from stream_app.finals.noise import Release
from stream_app.finals.reducing import NotCounted, at_most, reduced, rounded, totals
from stream_app.log.codec import Array
from stream_app.log.flushes import OPEN, Output, TopicName
from stream_app.log.marks import Loss

VERSION = 1
AGREED = "agreed visitors"  # attributes have no spaces in their names
FINAL_TYPE = "application/vnd.hearsay.final+arrow"
STATUS_TYPE = "application/vnd.hearsay.status+json"
LISTS = ("gaps", "n", "supports", "widths")  # the columns with several numbers for each question
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
    """One period of one survey as it may be published: counts of the questions that are released, or their release."""

    survey: str
    fingerprint: str
    period: int
    counts: Counts | Release
    ranges: bool  # whether rows belong to ranges of gaps: see `stream_app.finals.reducing.reduced`
    missing: NotCounted
    guarantees: str  # JSON of `PublishedGuarantees`
    units: UnitSums = field(default_factory=dict)  # sums of calendar units through this period

    @staticmethod
    def of(scheme: Scheme, period: int, counts: Counts | Release, missing: NotCounted) -> Final:
        """The final of exact counts, which are reduced here, or of a release."""
        guarantees, about = published_guarantees(scheme).model_dump_json(), (scheme.survey.id, scheme.fingerprint)
        if isinstance(counts, Release):  # exact numbers of late and refused rows would tell presence
            return Final(*about, period, counts, False, NotCounted(), guarantees)
        minimum, found = scheme.survey.minimum, reduced(counts, scheme)
        found = found if scheme.survey.central is None else totals(found)
        return Final(*about, period, found, minimum > 0, missing.rounded(minimum), guarantees)

    def encode(self) -> bytes:
        about = {
            "version": VERSION,
            "survey": self.survey,
            "fingerprint": self.fingerprint,
            "period": self.period,
            "by": "ranges" if self.ranges else "gaps",
            "refused": self.missing.refused,
            "late": json.dumps(dict(sorted(self.missing.late.items()))),
            "guarantees": self.guarantees,
        }
        if isinstance(self.counts, Release):
            rows = _release_rows(self.counts)
        else:
            rows = [_Row(name, found.N.shape[1], *found.arrays) for name, found in self.counts.items()]
        if self.units:
            about["units"] = json.dumps({unit: found.head for unit, found in self.units.items()})
            sums = [(f"{unit} {name}", N) for unit, found in self.units.items() for name, N in found.N.items()]
            rows += [_Row(named, len(N), NOTHING, NOTHING, N, NOTHING) for named, N in sums]
        columns = [
            pa.array([row.question for row in rows], pa.string()),
            pa.array([row.values for row in rows], pa.uint32()),
            *(_lists([getattr(row, field) for row in rows]) for field in LISTS),
        ]
        metadata = {name: str(value) for name, value in about.items()}
        fields = [
            pa.field(name, column.type) for name, column in zip(("question", "values", *LISTS), columns, strict=True)
        ]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(
            sink, schema := pa.schema(fields, metadata), options=pa.ipc.IpcWriteOptions(compression="zstd")
        ) as stream:
            stream.write_batch(pa.record_batch(columns, schema=schema))
        return bytes(sink.getvalue())

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
            noised = any(row.question == AGREED for row in rows)
            units = json.loads(about.get("units", "{}"))
            sums = {unit: UnitSum(**head, N=_supports(rows, unit)) for unit, head in units.items()}
            rows = [row for row in rows if " " not in row.question or row.question == AGREED]
            counts = _release(rows) if noised else {row.question: _statistics(row) for row in rows}
            late = {int(period): reports for period, reports in json.loads(about["late"]).items()}
            missing, by_ranges = NotCounted(int(about["refused"]), late), about["by"] == "ranges"
            terms = about["survey"], about["fingerprint"], int(about["period"])
            return Final(*terms, counts, by_ranges, missing, about["guarantees"], sums)
        except (pa.ArrowInvalid, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise ResultsError(
                f"a record is no final: {error}", "was it written by another version, or by something else?"
            ) from None


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


def _release_rows(release: Release) -> list[_Row]:
    gaps, agreed = release.axis.astype(np.uint16), release.agreed
    rows = [_Row(name, len(release.N[name]), gaps, n, release.N[name], NOTHING) for name, n in release.n.items()]
    return [*rows, _Row(AGREED, len(agreed.left), gaps, agreed.cells, agreed.left, NOTHING)]


def _release(rows: Iterable[_Row]) -> Release:
    found = {row.question: row for row in rows}
    agreed = found.pop(AGREED)
    n, N = {name: row.n for name, row in found.items()}, {name: row.supports for name, row in found.items()}
    return Release(n, N, Agreed(agreed.n, agreed.supports), agreed.gaps)


def _supports(rows: Iterable[_Row], unit: str) -> dict[str, Array]:
    named = f"{unit} "
    return {row.question.removeprefix(named): row.supports for row in rows if row.question.startswith(named)}


def _statistics(row: _Row) -> Statistics:
    return Statistics(row.gaps.astype(np.uint16), row.n, row.supports.reshape(len(row.gaps), row.values), row.widths)


def _rows(batch: pa.RecordBatch) -> list[_Row]:
    questions, values = batch["question"].to_pylist(), batch["values"].to_pylist()
    arrays = [_arrays(batch[name]) for name in LISTS]
    return [_Row(*fields) for fields in zip(questions, values, *arrays, strict=True)]


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

    A new one replaces the one before. Counts of open periods are records of their own. Where the survey has a
    `minimum`, there are none, and all numbers of reports are multiples of it: a number that is rounded to 0 is left
    out, because its key would show that there is a report. Where the survey has presence_epsilon, the status says only
    what is closed.
    """

    survey: str
    closed_through: int = -1  # the last period closed in every partition; -1: none
    open: dict[int, int] = Field({})  # reports by period
    rejects: dict[str, int] = Field({})  # rows refused, by reason
    lates: dict[int, int] = Field({})  # late rows, by period
    lost: tuple[Loss, ...] = ()  # first and last period, and how many reports of them together at most

    def reduced(self, minimum: int) -> Status:
        """What may be published of it. The numbers of open periods are reduced already, by `open_reports`."""
        rejects = {reason: rounded(n, minimum) for reason, n in self.rejects.items()}
        lates = {period: rounded(n, minimum) for period, n in self.lates.items()}
        return Status(
            survey=self.survey,
            closed_through=self.closed_through,
            open={period: n for period, n in self.open.items() if n},
            rejects={reason: n for reason, n in rejects.items() if n},
            lates={period: n for period, n in lates.items() if n},
            lost=tuple(Loss(first, last, at_most(n, minimum)) for first, last, n in self.lost),
        )

    @property
    def message(self) -> Output:
        headers = ((CONTENT_TYPE_HEADER, STATUS_TYPE.encode()),)
        return Output(OPEN, FinalKey(self.survey).encode(), self.model_dump_json().encode(), headers)
