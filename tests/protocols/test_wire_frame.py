"""Frames: what is sent is what is read, and nothing but frames is read."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.errors import WireError
from protocols.scheme import Scheme
from protocols.wire import (
    MAX_RECORD_BYTES,
    Frame,
    Reason,
    Reject,
    decode_frame,
    decode_report,
    encode_frame,
    row_faults,
)
from protocols.wire.content import MAX_ROWS
from tests.helpers.frames import encode_report, make_scheme, random_frame, same

SCHEME = make_scheme(3, 100, 300, solution="spl")
DISCLOSING = make_scheme(3, 100)
SCHEMES = [SCHEME, DISCLOSING, make_scheme(2), make_scheme(40, eps_inf=None, eps_1=None, eps=1.0, horizon=7)]


def decode(data: bytes, scheme: Scheme = SCHEME) -> Frame | Reject:
    return decode_frame(data, {scheme.survey.id: scheme}.get)


def refused(data: bytes, scheme: Scheme = SCHEME) -> Reject:
    reject = decode(data, scheme)
    assert isinstance(reject, Reject)
    return reject


@given(st.sampled_from(SCHEMES), st.integers(1, 300), st.integers(0, (1 << 32) - 2), st.integers(0, 1 << 30))
def test_what_is_sent_is_what_is_read(scheme: Scheme, rows: int, period: int, seed: int) -> None:
    frame = random_frame(scheme, rows, period, seed)
    decoded = decode(encode_frame(frame, scheme), scheme)
    assert isinstance(decoded, Frame)
    assert same(decoded, frame)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_frames_of_one_survey_with_as_many_rows_are_as_long(scheme: Scheme) -> None:
    frames = [random_frame(scheme, 100, period, seed=4) for period in (0, 9, 10, (1 << 32) - 1)]
    frames += [random_frame(scheme, 100, seed=seed * len(scheme.questions)) for seed in range(20)]
    by_answers: dict[tuple[str, ...], set[int]] = {}
    for frame in frames:
        by_answers.setdefault(tuple(frame.answers), set()).add(len(encode_frame(frame, scheme)))
    assert [len(lengths) for lengths in by_answers.values()] == [1] * len(by_answers)


def test_rows_out_of_order_are_not_sent_and_not_read() -> None:
    frame = random_frame(SCHEME, 10)
    backwards = frame.take(np.arange(10)[::-1])
    with pytest.raises(WireError, match="sorted"):
        encode_frame(backwards, SCHEME)
    assert "sorted" in refused(write(backwards)).detail


@pytest.mark.parametrize("rows", [0, MAX_ROWS + 1])
def test_too_few_or_too_many_rows_are_not_sent_and_not_read(rows: int) -> None:
    scheme = make_scheme(3)
    frame = random_frame(scheme, rows)
    with pytest.raises(WireError, match=f"a frame of {rows} rows"):
        encode_frame(frame, scheme)
    assert f"{rows} rows" in refused(write(frame), scheme).detail


def test_a_frame_too_large_to_be_taken_is_not_sent() -> None:
    scheme = make_scheme(4000)
    with pytest.raises(WireError, match="fewer rows"):
        encode_frame(random_frame(scheme, 10_000), scheme)
    assert refused(bytes(MAX_RECORD_BYTES + 1)).reason is Reason.TOO_LARGE


def test_reports_under_other_terms_are_refused_with_their_number_of_rows() -> None:
    data = encode_frame(random_frame(SCHEME, 7), SCHEME)
    changed = make_scheme(3, 100, 300, solution="spl", horizon=2)
    assert decode(data, changed) == Reject(Reason.WRONG_FINGERPRINT, "made under other terms", "s", 7)
    unknown = decode_frame(data, {}.get)
    assert unknown == Reject(Reason.UNKNOWN_SURVEY, "no survey 's' is published", None, 7)


Change = Callable[[dict[str, Any], dict[str, str]], None]


def write(frame: Frame, change: Change | None = None, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    """A frame as anyone with an Arrow library might write it."""
    columns: dict[str, Any] = {"token": pa.array(frame.tokens), "gap": pa.array(frame.gaps)}
    for name, column in frame.answers.items():
        binary = column.ndim == 2
        raw = [row.tobytes() for row in column]
        columns[name] = pa.array(raw, pa.binary(column.shape[1])) if binary else pa.array(column)
    metadata = frame.header.write()
    if change is not None:
        change(columns, metadata)
    batch = pa.record_batch(list(columns.values()), list(columns), metadata=metadata)
    return stream([batch], options)


def stream(batches: list[pa.RecordBatch], options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


FRAME = random_frame(SCHEME, 20)


def test_a_frame_written_plainly_is_read() -> None:
    for options in (None, pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)):
        decoded = decode(write(FRAME, options=options))
        assert isinstance(decoded, Frame)
        assert same(decoded, FRAME)


def test_a_frame_without_the_mark_of_its_end_is_read() -> None:
    data = encode_frame(FRAME, SCHEME)
    assert data.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    assert isinstance(decode(data[:-8]), Frame)


@pytest.mark.parametrize("tail", [b"\0", bytes(8), b"\xff\xff\xff\xff\0\0\0\0", b"\xff\xff\xff\xff"])
def test_bytes_after_the_end_are_refused(tail: bytes) -> None:
    assert "end" in refused(encode_frame(FRAME, SCHEME) + tail).detail


def test_a_second_batch_is_refused() -> None:
    with pa.ipc.open_stream(write(FRAME)) as reader:
        batch = reader.read_next_batch()
    assert refused(stream([batch, batch])).reason is Reason.UNDECODABLE


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_compressed_batch_is_refused_before_anything_is_unpacked(codec: str) -> None:
    assert "compressed" in refused(write(FRAME, options=pa.ipc.IpcWriteOptions(compression=codec))).detail


def test_the_old_way_to_start_a_message_is_refused() -> None:
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4, use_legacy_format=True)
    assert "no Arrow message" in refused(write(FRAME, options=options)).detail


class Secret(pa.ExtensionType):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(pa.uint64(), "tests.secret")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def _as(name: str, make: Callable[[Any], Any]) -> Change:
    def change(columns: dict[str, Any], metadata: dict[str, str]) -> None:
        columns[name] = make(columns[name])

    return change


def _say(**words: str) -> Change:
    return lambda columns, metadata: metadata.update(words)


def _first(name: str) -> Change:
    def change(columns: dict[str, Any], metadata: dict[str, str]) -> None:
        first = {name: columns.pop(name)}
        rest = dict(columns)
        columns.clear()
        columns.update(first | rest)

    return change


def _add(name: str) -> Change:
    return lambda columns, metadata: columns.update({name: columns["gap"]})


CHANGES: dict[str, tuple[Change, str]] = {
    "a dictionary": (_as("a0", lambda c: c.dictionary_encode()), "dictionary"),
    "an extension type": (_as("token", lambda c: pa.ExtensionArray.from_storage(Secret(), c)), "metadata of its own"),
    "a null": (_as("a0", lambda c: pa.array([None, *c.to_pylist()[1:]], c.type)), "nulls"),
    "a list": (_as("a0", lambda c: pa.array([[v] for v in c.to_pylist()])), "children"),
    "floats": (_as("a0", lambda c: c.cast(pa.float64())), "neither"),
    "text": (_as("a0", lambda c: c.cast(pa.string())), "neither"),
    "signed integers": (_as("gap", lambda c: c.cast(pa.int16())), "neither"),
    "wider integers": (_as("a0", lambda c: c.cast(pa.uint64())), "types of the survey"),
    "narrower vectors": (
        _as("a1", lambda c: pa.array([v[1:] for v in c.to_pylist()], pa.binary(12))),
        "types of the survey",
    ),
    "tokens of four bytes": (_as("token", lambda c: pa.array(np.arange(20, dtype=np.uint32))), "types of the survey"),
    "another first column": (_first("gap"), "token and gap"),
    "answers in another order": (_first("a0"), "in order"),
    "a further column": (_add("a3"), "in order"),
    "a further word": (_say(extra="1"), "metadata is not"),
    "a period that is not hexadecimal": (_say(period="0000000g"), "period"),
    "a decimal period": (_say(period="3"), "period"),
    "a period too long": (_say(period="0" * 9), "period"),
    "a survey with a name none can have": (_say(survey="../S"), "survey"),
    "a fingerprint in capitals": (_say(fingerprint=SCHEME.fingerprint.upper()), "fingerprint"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_a_frame_of_the_survey_is_refused_and_says_why(change: str) -> None:
    make, word = CHANGES[change]
    reject = refused(write(FRAME, make))
    assert (reject.reason, word in reject.detail) == (Reason.UNDECODABLE, True), reject


def test_one_name_for_two_columns_is_refused() -> None:
    batch = pa.record_batch([pa.array(FRAME.tokens)] * 2, ["token", "token"], metadata=FRAME.header.write())
    assert "twice" in refused(stream([batch])).detail


def test_metadata_that_is_not_utf_8_is_refused() -> None:
    assert "utf-8" in refused(write(FRAME).replace(b"a0", b"\xff0")).detail


def test_a_survey_that_discloses_takes_exactly_one_answer() -> None:
    frame = random_frame(DISCLOSING, 5, seed=0)
    both = replace(frame, answers=random_frame(make_scheme(3, 100, solution="spl"), 5).answers)
    assert "exactly one" in refused(write(both), DISCLOSING).detail
    assert "exactly one" in refused(write(replace(frame, answers={})), DISCLOSING).detail


def test_columns_without_columns_are_refused() -> None:
    empty = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))
    assert refused(stream([empty])).reason is Reason.UNDECODABLE


TURNS = {"eps_inf": None, "eps_1": None, "eps": 1, "one_in": 3, "horizon": 5}
SMP, SPL = make_scheme(3, 40, **TURNS), make_scheme(3, 40, solution="spl", **TURNS)
ALWAYS = make_scheme(3, 40, **{**TURNS, "one_in": 1})


def presence_only(scheme: Scheme, rows: int = 1, seed: int = 0) -> Frame:
    return replace(random_frame(scheme, rows, seed=seed), answers={})


def lookup(scheme: Scheme) -> dict[str, Scheme]:
    return {scheme.survey.id: scheme}


@pytest.mark.parametrize("scheme", [SMP, SPL], ids=["smp", "spl"])
def test_frames_and_reports_come_back_with_and_without_answers(scheme: Scheme) -> None:
    for frame in (presence_only(scheme, 500), random_frame(scheme, 500)):
        back = decode_frame(encode_frame(frame, scheme), lookup(scheme).get)
        assert isinstance(back, Frame) and same(back, frame)
        assert not row_faults(back, scheme, 0, 1).any()
    for frame in (presence_only(scheme), random_frame(scheme, 1)):
        back = decode_report(encode_report(frame, scheme), lookup(scheme).get)
        assert isinstance(back, Frame) and same(back, frame)


def test_a_presence_only_report_names_no_attribute_and_all_have_one_length() -> None:
    reports = [encode_report(presence_only(SMP, seed=seed), SMP) for seed in range(50)]
    assert {len(report) for report in reports} == {len(reports[0])}
    assert all(json.loads(report)["answers"] == {} for report in reports)
    assert not any(question.name.encode() in reports[0] for question in SMP.questions)
    table = pa.ipc.open_stream(encode_frame(presence_only(SMP, 9), SMP)).read_all()
    assert table.column_names == ["token", "gap"]


def test_where_every_report_answers_one_that_does_not_is_refused() -> None:
    frame = replace(presence_only(SMP, 7), fingerprint=ALWAYS.fingerprint)
    found = decode_frame(encode_frame(frame, SMP), lookup(ALWAYS).get)
    assert isinstance(found, Reject)
    assert (found.reason, found.rows) == (Reason.UNDECODABLE, 7)
    assert "answers exactly one of its attributes" in found.detail and "or none" not in found.detail
    found = decode_report(encode_report(frame.take(slice(1)), SMP), lookup(ALWAYS).get)
    assert isinstance(found, Reject) and found.reason is Reason.UNDECODABLE


def test_where_devices_take_turns_a_report_answers_everything_it_should_or_nothing() -> None:
    whole = random_frame(SPL, 5)
    half = replace(whole, answers={"a0": whole.answers["a0"]})
    for found in (
        decode_frame(encode_frame(half, SPL), lookup(SPL).get),
        decode_report(encode_report(half.take(slice(1)), SPL), lookup(SPL).get),
    ):
        assert isinstance(found, Reject) and found.reason is Reason.UNDECODABLE
        assert "answers all of its attributes, in order, or none of them" in found.detail


def test_rows_without_answers_are_checked_like_others() -> None:
    frame = presence_only(SMP, 6)
    frame.gaps[:] = [0, 1, 5, 6, 1, 1]
    frame = replace(frame, tokens=np.array([2, 4, 6, 8, 9, 10], dtype=np.uint64))
    assert row_faults(frame, SMP, 0, 2).tolist() == [3, 0, 0, 3, 2, 0]
