"""Reports that show a presence and nothing else: taken where devices take turns, refused everywhere else."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from protocols.scheme import Scheme
from protocols.wire import Frame, Reason, Reject, decode_frame, decode_report, encode_frame, encode_report, row_faults
from tests.helpers.frames import make_scheme, random_frame, same

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
