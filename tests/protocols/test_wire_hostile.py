"""Any bytes, as any kind of record: a typed frame or a reason, never an exception; only the operator moves clocks."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.wire import (
    ROW_REASONS,
    Clock,
    Frame,
    Reason,
    Reject,
    decode_clock,
    decode_frame,
    decode_report,
    encode_clock,
    encode_frame,
    row_faults,
)
from tests.helpers.frames import encode_report, make_scheme, random_frame

KEY = b"operator's key"
SCHEME = make_scheme(3, 20, 300, solution="spl", horizon=7)
LOOKUP = {SCHEME.survey.id: SCHEME}.get
LARGE = [0, 1, 7, 8, 255, 65_537, (1 << 31) - 1, (1 << 32) - 8, (1 << 63) - 1, (1 << 64) - 1]

LETTERS = [b'"', b"{", b"[", b",", b"\\", b"\\ud800", b"NaN", b"1e999", b"\xff", b"null"]
MUTATIONS = ("flip", "overwrite", "number", "cut", "drop", "repeat", "move", "letters")


def mutate(how: str, chance: random.Random, data: bytearray) -> None:
    place = chance.randrange(len(data))
    if how == "flip":
        data[place] ^= 1 << chance.randrange(8)
    elif how == "overwrite":
        data[place] = chance.randrange(256)
    elif how == "number":
        size = chance.choice([2, 4, 8])
        place = place // size * size
        data[place : place + size] = chance.choice(LARGE).to_bytes(8, "little")[:size]
    elif how == "cut":
        del data[place:]
    elif how == "drop":
        del data[place : place + chance.choice([1, 4, 8, 64])]
    elif how == "repeat":
        data[place:place] = data[place : place + chance.choice([1, 8, 64, 512])]
    elif how == "move":
        other, length = chance.randrange(len(data)), chance.choice([1, 4, 8, 32])
        data[place : place + length] = data[other : other + length]
    else:
        data[place : place + 1] = chance.choice(LETTERS)


FRAME, REPORT, CLOCK = (
    encode_frame(random_frame(SCHEME, 5), SCHEME),
    encode_report(random_frame(SCHEME, 1), SCHEME),
    encode_clock(Clock(SCHEME.survey.id, 3), KEY),
)
DECODERS: dict[str, tuple[bytes, Callable[[bytes], Frame | Clock | Reject]]] = {
    "frame": (FRAME, lambda data: decode_frame(data, LOOKUP)),
    "report": (REPORT, lambda data: decode_report(data, LOOKUP)),
    "clock": (CLOCK, lambda data: decode_clock(data, KEY)),
}


def mutated(original: bytes, count: int, seed: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(original)
        for how in chance.choices(MUTATIONS, k=chance.choice([1, 1, 2, 5])):
            if data:
                mutate(how, chance, data)
        yield bytes(data)


@pytest.mark.parametrize(("kind", "count"), [("frame", 8_000), ("report", 5_000), ("clock", 5_000)])
def test_mutated_records_are_judged_and_never_raise(kind: str, count: int) -> None:
    original, decode = DECODERS[kind]
    accepted = refused = 0
    for data in mutated(original, count, seed=1):
        result = decode(data)
        if isinstance(result, Reject):
            assert result.detail
            assert len(result.detail) < 300
            assert 1 <= result.rows <= 5
            refused += 1
        else:
            accepted += 1
            if isinstance(result, Frame):
                assert_whole(result)
    assert accepted + refused == count
    assert min(accepted, refused) > count / 1000, "mutations that are all alike test nothing"


def assert_whole(frame: Frame) -> None:
    """What was accepted can be judged row by row and counted."""
    assert 1 <= len(frame) <= 5
    assert all(len(column) == len(frame) for column in (frame.gaps, *frame.answers.values()))
    fine = frame.take(row_faults(frame, SCHEME, 0, 1) == 0)
    for name, column in fine.answers.items():
        question = SCHEME.question(name)
        groups = np.asarray(fine.gaps - 1)
        assert question.mechanism.encoding.count(column, groups, 7).shape == (7, question.k)


@pytest.mark.parametrize("kind", DECODERS)
def test_every_beginning_of_a_record_is_judged(kind: str) -> None:
    original, decode = DECODERS[kind]
    whole = [length for length in range(len(original) + 1) if not isinstance(decode(original[:length]), Reject)]
    ends = {"frame": [len(original) - 8, len(original)]}  # the mark of a stream's end may be left out
    assert whole == ends.get(kind, [len(original)])


def test_a_row_with_several_faults_is_refused_for_the_first() -> None:
    """So that a refusal has the same reason wherever it is counted."""
    frame = random_frame(SCHEME, 3)
    nobody, never = np.zeros(3, dtype=np.uint64), np.zeros(3, dtype=np.uint16)
    for fault, bad in (
        ("bad-token", replace(frame, tokens=nobody, gaps=never)),
        ("bad-gap", replace(frame, gaps=never)),
    ):
        wrong = {name: np.full_like(column, 0xFF) for name, column in frame.answers.items()}
        codes = row_faults(replace(bad, answers=wrong), SCHEME, 0, 1)
        assert [ROW_REASONS[code - 1] for code in codes] == [fault] * 3


RECORD: dict[str, Any] = json.loads(CLOCK)
CHANGES: list[dict[str, Any]] = [
    {"through": -2}, {"through": 1 << 32}, {"through": True}, {"through": 3.0}, {"through": "3"}, {"survey": 1},
    {"survey": "\ud800"}, {"survey": "Buttons"}, {"mac": None}, {"mac": ""}, {"mac": "\ud800"}, {"more": 1},
]  # fmt: skip
CLOCKS = {
    Reason.BAD_MAC: [json.dumps(RECORD | c).encode() for c in ({"through": 4}, {"survey": "t"}, {"mac": "0" * 64})],
    Reason.UNDECODABLE: [
        *(json.dumps(RECORD | change).encode() for change in CHANGES),
        *(b"", b"{}", b"[]", b"\xff", b'{"survey":"a","survey":"b","through":1,"mac":""}'),
    ],
    Reason.TOO_LARGE: [b" " * 5000],  # not even parsed
}


@given(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,127}", fullmatch=True), st.integers(-1, (1 << 32) - 1))
def test_a_clock_record_that_is_sent_is_what_is_read(survey: str, through: int) -> None:
    clock = Clock(survey, through)
    assert decode_clock(encode_clock(clock, KEY), KEY) == clock


@pytest.mark.parametrize("reason", CLOCKS)
def test_nothing_is_closed_without_the_key_or_by_what_is_no_clock_record(reason: Reason) -> None:
    for data in CLOCKS[reason]:
        reject = decode_clock(data, KEY)
        assert isinstance(reject, Reject) and reject.reason is reason, data
