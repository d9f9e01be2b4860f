"""Surveys and frames to put on the wire."""

from typing import Any

import numpy as np
import pyarrow as pa

from protocols.arrays import Column, Layout
from protocols.arrays.columns import Symbols
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import Frame
from protocols.wire.header import write_object
from tests.helpers.wire_page import Asked

TERMS: dict[str, Any] = {"id": "s", "start": "2026-01-01T00:00:00Z", "period": "1d", "eps_inf": 2, "eps_1": 1}


def make_scheme(*sizes: int, **terms: Any) -> Scheme:
    """A survey with one attribute of each size, named a0, a1, ..."""
    attributes = [{"name": f"a{place}", "range": {"last": k - 1}} for place, k in enumerate(sizes)]
    return Scheme(Survey.model_validate({**TERMS, "attributes": attributes, **terms}))


def random_answers(layout: Layout, rows: int, rng: np.random.Generator) -> Column:
    if isinstance(layout, Symbols):
        return rng.integers(0, layout.count, rows).astype(layout.dtype)
    return layout.pack(rng.integers(0, 2, (rows, layout.count)))


def random_frame(scheme: Scheme, rows: int, period: int = 3, seed: int = 0) -> Frame:
    """Good rows of a survey, sorted."""
    rng = np.random.default_rng(seed)
    questions = [scheme.questions[seed % len(scheme.questions)]] if scheme.discloses else scheme.questions
    return Frame(
        scheme.survey.id,
        scheme.fingerprint,
        period,
        rng.integers(1, 1 << 64, rows, dtype=np.uint64),
        rng.integers(1, scheme.survey.horizon + 1, rows).astype(np.uint16),
        {q.name: random_answers(q.mechanism.encoding.answer, rows, rng) for q in questions},
    ).sorted()


def same(one: Frame, other: Frame) -> bool:
    """Whether two frames say the same, types included."""
    ours, theirs = ([f.tokens, f.gaps, *f.answers.values()] for f in (one, other))
    return (
        one.header == other.header
        and list(one.answers) == list(other.answers)
        and all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    )


def asked(scheme: Scheme) -> dict[str, Asked]:
    """As `hearsay survey check --json` shows it."""
    return {q.name: Asked(q.label, q.k, q.mechanism.encoding.answer.bytes) for q in scheme.questions}


def encode_report(frame: Frame, scheme: Scheme) -> bytes:
    """A frame of one row as a JSON report, as a device writes it."""
    (token,), (gap,) = frame.tokens.tolist(), frame.gaps.tolist()
    answers = {
        name: scheme.question(name).mechanism.encoding.answer.to_bytes(column).tobytes().hex()
        for name, column in frame.answers.items()
    }
    visits = scheme.survey.visits
    numbers = {"token": f"{token:016x}", visits.column: f"{gap:0{2 * visits.wire.itemsize}x}"}
    return write_object({**frame.header.write(), **numbers, "answers": answers})


def stream(batches: list[pa.RecordBatch], options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    """A stream of record batches as an Arrow library writes it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())
