"""Frames: a few thousand reports of one survey and one period as one Arrow IPC record batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from protocols.columns import Column, Layout, PackedBits, Symbols
from protocols.errors import WireError
from protocols.scheme import Question, Scheme
from protocols.survey import MAX_PERIOD
from protocols.wire.content import MAX_RECORD_BYTES, MAX_ROWS
from protocols.wire.reasons import Reason, Reject

Lookup = Callable[[str], Scheme | None]  # survey id -> its compiled form


@dataclass(frozen=True)
class Frame:
    """Reports, as columns. Rows are sorted by token, so their order says nothing about who sent them."""

    survey: str
    fingerprint: str
    period: int
    tokens: NDArray[np.uint64] = field(repr=False)
    gaps: NDArray[np.uint16] = field(repr=False)
    answers: dict[str, Column] = field(repr=False)

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, rows: NDArray[Any] | slice) -> Frame:
        """Some of the rows, by index, mask or slice; ascending indices keep the order."""
        answers = {name: column[rows] for name, column in self.answers.items()}
        return Frame(self.survey, self.fingerprint, self.period, self.tokens[rows], self.gaps[rows], answers)

    def sorted(self) -> Frame:
        return self.take(np.argsort(self.tokens, kind="stable"))


def encode_frame(frame: Frame, scheme: Scheme) -> bytes:
    """A frame as Arrow IPC bytes (a stream of one record batch, not compressed: Kafka compresses)."""
    if not 0 < len(frame) <= MAX_ROWS:
        raise WireError(f"a frame of {len(frame)} rows", f"send 1 to {MAX_ROWS} rows a frame")
    columns = [pa.array(frame.tokens), pa.array(frame.gaps)]
    names = ["token", "gap"]
    for name, column in frame.answers.items():
        columns.append(_to_arrow(column, scheme.question(name).mechanism.encoding.answer))
        names.append(name)
    metadata = {"survey": frame.survey, "fingerprint": frame.fingerprint, "period": str(frame.period)}
    batch = pa.record_batch(columns, schema=_schema(scheme, names[2:]).with_metadata(metadata))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def decode_frame(data: bytes, lookup: Lookup) -> Frame | Reject:
    """A typed frame, or the reason why not. Never raises, whatever the bytes; rows are judged by `row_faults`."""
    if len(data) > MAX_RECORD_BYTES:
        return Reject(Reason.TOO_LARGE, f"{len(data)} bytes; at most {MAX_RECORD_BYTES}")
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            batch = reader.read_next_batch()
            batch.validate(full=True)
        metadata = {k.decode(): v.decode() for k, v in (batch.schema.metadata or {}).items()}
        survey, fingerprint, period = metadata["survey"], metadata["fingerprint"], int(metadata["period"])
    except Exception as error:  # pyarrow raises many kinds; each of them means the same here
        return Reject(Reason.UNDECODABLE, f"not a frame: {type(error).__name__}")
    rows = batch.num_rows
    scheme = lookup(survey)
    if scheme is None:
        return Reject(Reason.UNKNOWN_SURVEY, f"no survey {survey!r} is published", rows=rows)
    if fingerprint != scheme.survey.fingerprint:
        return Reject(Reason.WRONG_FINGERPRINT, "made under other terms", survey, rows)
    fault = _misfit(batch, scheme, period)
    if fault:
        return Reject(Reason.UNDECODABLE, fault, survey, rows)
    answers = {
        name: _from_arrow(batch.column(name), scheme.question(name).mechanism.encoding.answer)
        for name in batch.schema.names[2:]
    }
    tokens = batch.column("token").to_numpy(zero_copy_only=False)
    gaps = batch.column("gap").to_numpy(zero_copy_only=False)
    if (tokens[1:] < tokens[:-1]).any():
        return Reject(Reason.UNDECODABLE, "rows are not sorted by token", survey, rows)
    return Frame(survey, fingerprint, period, tokens, gaps, answers)


def _misfit(batch: pa.RecordBatch, scheme: Scheme, period: int) -> str:
    """What is wrong with a batch's shape; empty if nothing."""
    if not 0 < batch.num_rows <= MAX_ROWS:
        return f"{batch.num_rows} rows; 1 to {MAX_ROWS} are allowed"
    if not 0 <= period <= MAX_PERIOD:
        return f"period {period} is out of range"
    names = batch.schema.names[2:]
    known = [question.name for question in scheme.questions]
    if scheme.discloses:
        if len(names) != 1 or names[0] not in known:
            return "a report of this survey answers exactly one of its attributes"
    elif names != known:
        return "a report of this survey answers all of its attributes, in order"
    if not batch.schema.equals(_schema(scheme, names), check_metadata=False):
        return "columns are not named and typed as the survey says"
    if any(column.null_count for column in batch.columns):
        return "a column has nulls"
    return ""


def _schema(scheme: Scheme, names: list[str]) -> pa.Schema:
    questions: list[Question] = [scheme.question(name) for name in names]
    fields = [pa.field("token", pa.uint64()), pa.field("gap", pa.uint16())]
    fields += [pa.field(q.name, _arrow_type(q.mechanism.encoding.answer)) for q in questions]
    return pa.schema(fields)


def _arrow_type(layout: Layout) -> pa.DataType:
    if isinstance(layout, Symbols):
        return pa.from_numpy_dtype(layout.dtype)
    return pa.binary(layout.bytes)


def _to_arrow(column: Column, layout: Layout) -> pa.Array:
    if isinstance(layout, Symbols):
        return pa.array(column.astype(layout.dtype, copy=False))
    raw = pa.py_buffer(layout.to_bytes(column))
    return pa.FixedSizeBinaryArray.from_buffers(_arrow_type(layout), len(column), [None, raw])


def _from_arrow(array: pa.Array, layout: Layout) -> Column:
    if isinstance(layout, PackedBits):
        raw = np.frombuffer(array.buffers()[1], dtype=np.uint8)
        start = array.offset * layout.bytes
        return layout.from_bytes(raw[start : start + len(array) * layout.bytes])
    symbols: Column = array.to_numpy(zero_copy_only=False)
    return symbols
