"""Clock records: only the operator's key moves time, and only for the survey and period it was used for."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.wire import Clock, Reason, Reject, decode_clock, encode_clock

KEY = b"operator's key"
RECORD: dict[str, Any] = json.loads(encode_clock(Clock("buttons", 3), KEY))


def refused(data: bytes) -> Reason:
    reject = decode_clock(data, KEY)
    assert isinstance(reject, Reject)
    return reject.reason


@given(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,127}", fullmatch=True), st.integers(-1, (1 << 32) - 1))
def test_what_is_sent_is_what_is_read(survey: str, through: int) -> None:
    clock = Clock(survey, through)
    assert decode_clock(encode_clock(clock, KEY), KEY) == clock


@pytest.mark.parametrize("change", [{"through": 4}, {"survey": "button"}, {"mac": "0" * 64}])
def test_nothing_is_closed_without_the_key(change: dict[str, Any]) -> None:
    assert refused(json.dumps(RECORD | change).encode()) is Reason.BAD_MAC


CHANGES: list[dict[str, Any]] = [
    {"through": -2}, {"through": 1 << 32}, {"through": True}, {"through": 3.0}, {"through": "3"}, {"survey": 1},
    {"survey": "\ud800"}, {"survey": "Buttons"}, {"mac": None}, {"mac": ""}, {"mac": "\ud800"}, {"more": 1},
]  # fmt: skip
NOT_JSON = [b"", b"{}", b"[]", b"\xff", b'{"survey":"a","survey":"b","through":1,"mac":""}']


@pytest.mark.parametrize("data", [*(json.dumps(RECORD | change).encode() for change in CHANGES), *NOT_JSON])
def test_what_is_not_a_clock_record_is_refused(data: bytes) -> None:
    assert refused(data) is Reason.UNDECODABLE


def test_a_record_too_large_is_not_even_parsed() -> None:
    assert refused(b" " * 5000) is Reason.TOO_LARGE
