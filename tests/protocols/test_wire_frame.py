"""Frames and single reports: what is sent is what is read, at one length, and nothing else is read."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
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
from protocols.wire.arrow import END
from protocols.wire.content import MAX_ROWS
from tests.helpers.frames import encode_report, make_scheme, random_frame, same, stream

TURNS = {"eps_inf": None, "eps_1": None, "eps": 1, "one_in": 3, "horizon": 5}
SMP, SPL = make_scheme(3, 40, **TURNS), make_scheme(3, 40, solution="spl", **TURNS)
ALWAYS = make_scheme(3, 40, **{**TURNS, "one_in": 1})
SCHEME = make_scheme(3, 100, 300, solution="spl")
SCHEMES = [SCHEME, make_scheme(3, 100), make_scheme(2), make_scheme(40, **{**TURNS, "one_in": 1}), SMP, SPL]
FORMS: dict[str, tuple[Callable[..., bytes], Callable[..., Frame | Reject], int]] = {
    "frame": (encode_frame, decode_frame, 300),
    "report": (encode_report, decode_report, 1),
}
"""How reports are written, how they are read, and of how many rows."""


def presence_only(frame: Frame) -> Frame:
    return replace(frame, answers={})


def refused(data: bytes, scheme: Scheme = SCHEME, form: str = "frame") -> Reject:
    reject = FORMS[form][1](data, {scheme.survey.id: scheme}.get)
    assert isinstance(reject, Reject)
    return reject


@pytest.mark.parametrize("form", FORMS)
@given(st.sampled_from(SCHEMES), st.integers(1, 300), st.integers(0, (1 << 32) - 2), st.integers(0, 1 << 30))
def test_what_is_sent_is_what_is_read(form: str, scheme: Scheme, rows: int, period: int, seed: int) -> None:
    encode, decode, most = FORMS[form]
    frame = random_frame(scheme, min(rows, most), period, seed)
    for sent in (frame, *([presence_only(frame)] if scheme.takes_turns else [])):
        decoded = decode(encode(sent, scheme), {scheme.survey.id: scheme}.get)
        assert isinstance(decoded, Frame)
        assert same(decoded, sent)
        assert not row_faults(decoded, scheme, 0, 1).any()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_reports_of_one_survey_that_answer_the_same_attributes_are_as_long(form: str, scheme: Scheme) -> None:
    (encode, _, rows), by_answers = FORMS[form], dict[tuple[str, ...], set[int]]()
    for seed in range(25):
        frame = random_frame(scheme, rows, 7**seed % (1 << 32), seed)
        for sent in (frame, *([presence_only(frame)] if scheme.takes_turns else [])):
            by_answers.setdefault(tuple(sent.answers), set()).add(len(encode(sent, scheme)))
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


def test_a_frame_too_large_to_be_taken_is_not_sent_and_nothing_too_large_is_parsed() -> None:
    scheme = make_scheme(4000)
    with pytest.raises(WireError, match="fewer rows"):
        encode_frame(random_frame(scheme, 10_000), scheme)
    assert refused(bytes(MAX_RECORD_BYTES + 1)).reason is Reason.TOO_LARGE
    assert refused(b" " * (1 << 20), form="report").reason is Reason.TOO_LARGE


@pytest.mark.parametrize("form", FORMS)
def test_reports_under_other_terms_are_refused_with_their_number_of_rows(form: str) -> None:
    encode, decode, rows = FORMS[form]
    data = encode(random_frame(SCHEME, rows), SCHEME)
    changed = make_scheme(3, 100, 300, solution="spl", horizon=2)
    assert refused(data, changed, form) == Reject(Reason.WRONG_FINGERPRINT, "made under other terms", "s", rows)
    assert decode(data, {}.get) == Reject(Reason.UNKNOWN_SURVEY, "no survey 's' is published", None, rows)


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


FRAME = random_frame(SCHEME, 20)


def test_a_frame_that_another_library_wrote_is_read() -> None:
    own = encode_frame(FRAME, SCHEME)
    assert own.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    old = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    for data in (write(FRAME), write(FRAME, options=old), own[:-8]):  # the mark of its end may be left out
        decoded = decode_frame(data, {"s": SCHEME}.get)
        assert isinstance(decoded, Frame)
        assert same(decoded, FRAME)


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


CHANGES: dict[str, tuple[Change, str]] = {
    "a dictionary": (_as("a0", lambda c: c.dictionary_encode()), "dictionary"),
    "an extension type": (_as("token", lambda c: pa.ExtensionArray.from_storage(Secret(), c)), "metadata of its own"),
    "a null": (_as("a0", lambda c: pa.array([None, *c.to_pylist()[1:]], c.type)), "nulls"),
    "a list": (_as("a0", lambda c: pa.array([[v] for v in c.to_pylist()])), "children"),
    "floats": (_as("a0", lambda c: c.cast(pa.float64())), "neither"),
    "signed integers": (_as("gap", lambda c: c.cast(pa.int16())), "neither"),
    "wider integers": (_as("a0", lambda c: c.cast(pa.uint64())), "types of the survey"),
    "narrower vectors": (_as("a1", lambda c: pa.array([v[1:] for v in c.to_pylist()], pa.binary(12))), "types of"),
    "tokens of four bytes": (_as("token", lambda c: pa.array(np.arange(20, dtype=np.uint32))), "types of the survey"),
    "another first column": (_first("gap"), "token and gap"),
    "answers in another order": (_first("a0"), "in order"),
    "a further word": (_say(extra="1"), "metadata is not"),
    "a period that is not hexadecimal": (_say(period="0000000g"), "period"),
    "a period too long": (_say(period="0" * 9), "period"),
    "a survey with a name none can have": (_say(survey="../S"), "survey"),
    "a fingerprint in capitals": (_say(fingerprint=SCHEME.fingerprint.upper()), "fingerprint"),
}


LEGACY = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4, use_legacy_format=True)
TOKENS = pa.array(FRAME.tokens)
TWICE = pa.record_batch([TOKENS] * 2, ["token", "token"], metadata=FRAME.header.write())
NOT_FRAMES = {
    **{name: (write(FRAME, change), word) for name, (change, word) in CHANGES.items()},
    **{
        f"followed by {tail!r}": (encode_frame(FRAME, SCHEME) + tail, "end") for tail in (b"\0", bytes(8), END, END[:4])
    },
    "compressed": (write(FRAME, options=pa.ipc.IpcWriteOptions(compression="zstd")), "compressed"),
    "messages that start in the old way": (write(FRAME, options=LEGACY), "no Arrow message"),
    "one name for two columns": (stream([TWICE]), "twice"),
    "metadata that is not UTF-8": (write(FRAME).replace(b"a0", b"\xff0"), "utf-8"),
    "no columns": (stream([pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))]), "not"),
}


@pytest.mark.parametrize("what", NOT_FRAMES)
def test_what_is_not_a_frame_of_the_survey_is_refused_and_says_why(what: str) -> None:
    data, word = NOT_FRAMES[what]
    reject = refused(data)
    assert (reject.reason, word in reject.detail) == (Reason.UNDECODABLE, True), reject


BOTH = random_frame(SPL, 7).answers
WRONG_ANSWERS: dict[str, tuple[Scheme, dict[str, Any], str]] = {
    "none": (ALWAYS, {}, "a report of this survey answers exactly one of its attributes"),
    "both of which one is asked": (ALWAYS, BOTH, "a report of this survey answers exactly one of its attributes"),
    "one of two": (SPL, {"a0": BOTH["a0"]}, "answers all of its attributes, in order, or none of them"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", WRONG_ANSWERS)
def test_a_report_answers_what_its_survey_asks_and_nothing_else(form: str, case: str) -> None:
    scheme, answers, why = WRONG_ANSWERS[case]
    encode, _, most = FORMS[form]
    frame = replace(random_frame(SPL, 7), fingerprint=scheme.fingerprint, answers=answers).take(slice(most))
    reject = refused(encode(frame, SPL), scheme, form)
    assert (reject.reason, reject.rows, why in reject.detail) == (Reason.UNDECODABLE, len(frame), True), reject
    assert ("or none" in reject.detail) == scheme.takes_turns


def test_rows_without_answers_are_checked_like_others() -> None:
    gaps = np.array([0, 1, 5, 6, 1, 1], dtype=np.uint16)
    frame = replace(
        presence_only(random_frame(SMP, 6)), gaps=gaps, tokens=np.array([2, 4, 6, 8, 9, 10], dtype=np.uint64)
    )
    assert row_faults(frame, SMP, 0, 2).tolist() == [3, 0, 0, 3, 2, 0]


RECORD: dict[str, Any] = json.loads(encode_report(random_frame(SCHEME, 1), SCHEME))


def test_order_and_spaces_do_not_matter() -> None:
    shuffled = {key: RECORD[key] for key in reversed(RECORD)}
    shuffled["answers"] = {name: RECORD["answers"][name] for name in reversed(RECORD["answers"])}
    decoded = decode_report(json.dumps(shuffled, indent=2).encode(), {"s": SCHEME}.get)
    assert isinstance(decoded, Frame)
    assert same(decoded, random_frame(SCHEME, 1))


REPORTS = json.loads((Path(__file__).parent / "not_reports.json").read_text())
"""What is changed in a good report, and a word of the refusal."""


@pytest.mark.parametrize("change", REPORTS)
def test_what_is_not_a_report_of_the_survey_is_refused_and_says_why(change: str) -> None:
    fields, word = REPORTS[change]
    if isinstance(fields.get("answers"), dict):
        fields = {"answers": RECORD["answers"] | fields["answers"]}
    reject = refused(json.dumps(RECORD | fields).encode(), form="report")
    assert (reject.reason, word in reject.detail) == (Reason.UNDECODABLE, True), reject


TEXT = json.dumps(RECORD)
NOT_JSON = {
    "nothing": b"",
    "a key twice": TEXT[:-1].encode() + b', "gap": "0001"}',
    "an answer twice": TEXT.replace('"a0":', '"a0": "00", "a0":').encode(),
    "not a number": TEXT.replace('"gap": "', '"gap": NaN, "x": "').encode(),
    "another encoding": TEXT.encode("utf-16"),
    "a mark of byte order": b"\xef\xbb\xbf" + TEXT.encode(),
    "a list": b"[]",
    "two objects": TEXT.encode() * 2,
}


@pytest.mark.parametrize("bytes_", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_one_json_object_is_refused(bytes_: bytes) -> None:
    assert refused(bytes_, form="report").reason is Reason.UNDECODABLE
