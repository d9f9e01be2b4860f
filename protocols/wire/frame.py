"""Frames: a few thousand reports of one survey and one period as one Arrow IPC record batch."""

from __future__ import annotations  # pyarrow is loaded when it is used, and not for a type

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from protocols.arrays import lazy_arrow as pa
from protocols.arrays.aliases import Bytes, Column, Mask, Tokens, Whole
from protocols.arrays.columns import Layout, PackedBits, Symbols
from protocols.errors import WireError
from protocols.scheme import Scheme
from protocols.wire.arrow import END, Head, read_columns, read_head
from protocols.wire.content import MAX_RECORD_BYTES, MAX_ROWS, Reason, Reject, partition_of
from protocols.wire.header import Lookup, ReportHeader

FINE = 0
ROW_REASONS = (Reason.BAD_TOKEN, Reason.WRONG_PARTITION, Reason.BAD_GAP, Reason.BAD_VALUE, Reason.TOO_MANY_BITS)
FORMS = 256  # of frames whose schemas are kept


@dataclass(frozen=True)
class Frame:
    """Reports, as columns. Rows are sorted by token, so their order reveals nothing about their devices."""

    survey: str
    fingerprint: str
    period: int
    tokens: Tokens = field(repr=False)
    gaps: Column = field(repr=False)  # or flags: see `protocols.survey.visits`
    answers: dict[str, Column] = field(repr=False)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def answered(self) -> tuple[str, ...]:
        return tuple(self.answers)

    @property
    def header(self) -> ReportHeader:
        return ReportHeader(self.survey, self.fingerprint, self.period)

    def take(self, rows: Whole | Mask | slice) -> Frame:
        """Some of the rows, by index, mask or slice; ascending indices keep the order."""
        if isinstance(rows, slice):
            chosen = [column[rows] for column in self.columns]
        else:
            places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
            chosen = [column.take(places, axis=0) for column in self.columns]  # a quarter of the time of column[places]
        tokens, gaps, *answers = chosen
        return replace(self, tokens=tokens, gaps=gaps, answers=dict(zip(self.answers, answers, strict=True)))

    @property
    def columns(self) -> list[Column]:
        return [self.tokens, self.gaps, *self.answers.values()]

    def sorted(self) -> Frame:
        return self.take(np.argsort(self.tokens, kind="stable"))

    def parts(self, most: int = MAX_ROWS) -> list[Frame]:
        """In parts of at most so many rows, each of which fits in a record; none if it is empty."""
        width = self.tokens.itemsize + self.gaps.itemsize + sum(column[:1].nbytes for column in self.answers.values())
        step = max(1, min(most, MAX_RECORD_BYTES // 2 // width))
        return [self.take(slice(start, start + step)) for start in range(0, len(self), step)]


def join_frames(frames: Sequence[Frame]) -> Frame:
    """The rows of frames with the same header and columns, concatenated: for counting, not for sending."""
    first = frames[0]
    return replace(
        first,
        tokens=np.concatenate([frame.tokens for frame in frames]),
        gaps=np.concatenate([frame.gaps for frame in frames]),
        answers={name: np.concatenate([frame.answers[name] for frame in frames]) for name in first.answers},
    )


def most_rows(scheme: Scheme) -> int:
    """How many reports of a survey one record has at most."""
    least = min(sum(layout.bytes for layout in _layouts(scheme, form).values()) for form in scheme.forms)
    return min(MAX_ROWS, MAX_RECORD_BYTES // least)


def encode_frame(frame: Frame, scheme: Scheme) -> bytes:
    """A frame as Arrow IPC bytes (a stream of one record batch, not compressed: it is mostly noise)."""
    if not 0 < len(frame) <= MAX_ROWS:
        raise WireError(f"a frame of {len(frame)} rows", f"send 1 to {MAX_ROWS} rows a frame")
    if not _ascending(frame.tokens):
        raise WireError("a frame whose rows are not sorted by token would show their order", "send frame.sorted()")
    schema, message = _schema(scheme, frame.answered, frame.header)
    arrays = [
        pa.Array.from_buffers(kind, len(frame), [None, pa.py_buffer(layout.to_bytes(column))])
        for kind, layout, column in zip(
            schema.types, _layouts(scheme, frame.answered).values(), frame.columns, strict=True
        )
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    data = b"".join([message, batch.serialize(), END])
    if len(data) > MAX_RECORD_BYTES:
        raise WireError(f"a frame of {len(data)} bytes; at most {MAX_RECORD_BYTES} are taken", "send fewer rows")
    return data


def decode_frame(data: bytes, lookup: Lookup) -> Frame | Reject:
    """A typed frame, or the reason why not. Never raises, whatever the bytes; rows are checked by `row_faults`.

    The columns are views of `data`, read-only.
    """
    if len(data) > MAX_RECORD_BYTES:
        return Reject(Reason.TOO_LARGE, f"{len(data)} bytes; at most {MAX_RECORD_BYTES}")
    try:
        head = read_head(data)
        header = ReportHeader.read(head.metadata)
    except ValueError as error:
        return Reject(Reason.UNDECODABLE, f"not a frame: {error}")
    scheme = header.scheme(lookup, head.rows)
    if isinstance(scheme, Reject):
        return scheme
    fault = _misfit(head, scheme)
    if fault:
        return Reject(Reason.UNDECODABLE, fault, header.survey, head.rows)
    tokens, gaps, *columns = read_columns(data, head)
    if not _ascending(tokens):
        return Reject(Reason.UNDECODABLE, "rows are not sorted by token", header.survey, head.rows)
    answers = dict(zip([*head.columns][2:], columns, strict=True))
    return Frame(header.survey, header.fingerprint, header.period, tokens, gaps, answers)


def _misfit(head: Head, scheme: Scheme) -> str:
    """What is wrong with the columns for this survey; empty if nothing."""
    if head.metadata.keys() != {"survey", "fingerprint", "period"}:
        return "the schema's metadata is not survey, fingerprint and period"
    names = [*head.columns]
    form = tuple(names[2:])
    if form not in scheme.forms:
        return f"a report of this survey {scheme.forms_in_words}"
    if names[:2] != ["token", scheme.visits.column]:
        return f"the first two columns are not token and {scheme.visits.column}"
    return "" if head.columns == _columns(scheme, form) else "columns do not have the types of the survey"


@lru_cache(maxsize=FORMS)
def _schema(scheme: Scheme, form: tuple[str, ...], header: ReportHeader) -> tuple[pa.Schema, bytes]:
    """The schema of frames that answer some attributes, and the message that says it."""
    fields = [
        (name, pa.binary(dtype.itemsize) if dtype.shape else pa.from_numpy_dtype(dtype))
        for name, dtype in _columns(scheme, form).items()
    ]
    schema = pa.schema(fields, metadata=header.write())
    return schema, schema.serialize().to_pybytes()


@lru_cache(maxsize=FORMS)
def _columns(scheme: Scheme, form: tuple[str, ...]) -> dict[str, np.dtype[Any]]:
    """The columns of a frame that answers some attributes."""
    return {
        name: np.dtype((layout.dtype, (layout.bytes,))) if isinstance(layout, PackedBits) else layout.dtype
        for name, layout in _layouts(scheme, form).items()
    }


@lru_cache(maxsize=FORMS)
def _layouts(scheme: Scheme, form: tuple[str, ...]) -> dict[str, Layout]:
    answers = {name: scheme.question(name).mechanism.encoding.answer for name in form}
    visits = scheme.visits
    return {"token": Symbols(1 << 64), visits.column: Symbols(1 << 8 * visits.wire.itemsize), **answers}


def _ascending(tokens: Tokens) -> bool:
    return not (tokens[1:] < tokens[:-1]).any()


def row_faults(frame: Frame, scheme: Scheme, partition: int, partitions: int) -> Bytes:
    """For each row FINE, or 1 + the place in ROW_REASONS of the first thing wrong with it."""
    bad_value = np.zeros(len(frame), dtype=bool)
    for name, column in frame.answers.items():
        bad_value |= ~scheme.question(name).mechanism.encoding.answer.good(column)
    tests: tuple[Mask, ...] = (
        frame.tokens == 0,
        partition_of(frame.tokens, partitions) != partition,
        ~scheme.visits.good(frame.gaps, frame.period),
        bad_value,
    )
    too_many = None if scheme.presence is None else scheme.presence.too_many(frame.answers, scheme.questions)
    if too_many is not None:
        tests = (*tests, too_many)
    faults = np.zeros(len(frame), dtype=np.uint8)
    for code in range(len(tests), 0, -1):
        if tests[code - 1].any():  # looking is much faster than assigning nothing
            faults[tests[code - 1]] = code
    return faults
