"""The page about the wire format tells the truth: its example is made and read by the code."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from pathlib import Path

import numpy as np

from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import Clock, Frame, decode_clock, decode_report, partition_of
from protocols.wire.report import encode_report

PAGE = (Path(__file__).parents[2] / "docs" / "wire-format.md").read_text()


def block(language: str, place: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)\n```", PAGE, re.DOTALL)[place]


SCHEME = Scheme(parse_survey(block("yaml")))


def test_the_example_is_what_a_device_sends() -> None:
    device = Respondent(SCHEME, Keyring(bytes(range(32))))
    question, alone = SCHEME.questions[0], np.array([0], dtype=np.uint64)
    frame = Frame(
        SCHEME.survey.id,
        SCHEME.fingerprint,
        3,
        device.tokens(alone, 3),
        np.array([1], dtype=np.uint16),
        {"colour": device.answers(question, alone, 3, np.array([0]))},
    )
    assert encode_report(frame, SCHEME).decode() == block("json")


def test_the_example_can_be_read() -> None:
    frame = decode_report(block("json").encode(), {"buttons": SCHEME}.get)
    assert isinstance(frame, Frame)
    assert (frame.period, frame.gaps.tolist(), frame.answers["colour"].tolist()) == (3, [1], [2])
    assert partition_of(frame.tokens, 8).tolist() == [5]


def test_the_clock_of_the_example_can_be_made_with_the_standard_library() -> None:
    text = block("json", 1)
    message = b"hearsay clock\0" + b"buttons" + b"\0" + (3).to_bytes(8, "big", signed=True)
    assert json.loads(text)["mac"] == hmac.new(bytes(32), message, hashlib.sha256).hexdigest()
    assert decode_clock(text.encode(), bytes(32)) == Clock("buttons", 3)
