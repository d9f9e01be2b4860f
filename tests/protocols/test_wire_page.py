"""All on the wire can be read with docs/wire-format.md alone (tests/helpers/wire_page.py); its example is true."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.arrays.columns import Symbols
from protocols.mechanisms.catalogue import RECORDS
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import (
    Clock,
    Frame,
    decode_clock,
    decode_report,
    encode_clock,
    encode_frame,
    partition_of,
)
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.flushes import DEADLETTERS, Output
from tests.helpers import wire_page
from tests.helpers.frames import asked, encode_report, make_scheme, random_frame
from tests.helpers.wire_page import Closing, Row

PAGE = (Path(__file__).parents[2] / "docs" / "wire-format.md").read_text()
KEY = bytes(range(32))


def of_mechanism(mechanism: str, values: int, **terms: Any) -> Scheme:
    attribute = {"name": "a0", "range": {"last": values - 1}, "mechanism": mechanism}
    return make_scheme(attributes=[attribute], **terms)


SCHEMES = {
    "symbols and bits": make_scheme(3, 100, 300, solution="spl", horizon=400),
    "one of several": make_scheme(3, 40),
    "wide symbols": of_mechanism("l-grr", 300),
    "fakes": make_scheme(5, 20, solution="rs+fd"),
    "hashes": of_mechanism("loloha", 200),
    "held bits": of_mechanism("dbitflip", 30, eps_1=None),
    "turns": make_scheme(4, eps_inf=None, eps_1=None, eps=1, one_in=3),
}


def rows_of(frame: Frame, scheme: Scheme) -> list[Row]:
    """What the rows of a frame say, from the arrays that were encoded."""

    def answer(name: str, row: int) -> wire_page.Answer:
        layout, column = scheme.question(name).mechanism.encoding.answer, frame.answers[name]
        if isinstance(layout, Symbols):
            return int(column[row])
        return frozenset(np.flatnonzero(layout.unpack(column[row : row + 1])[0]).tolist())

    about, numbers = (frame.survey, frame.fingerprint, frame.period), zip(frame.tokens, frame.gaps, strict=True)
    answers = ({name: answer(name, row) for name in frame.answers} for row in range(len(frame)))
    return [Row(*about, int(token), int(gap), next(answers)) for token, gap in numbers]


@pytest.mark.parametrize("name", SCHEMES)
def test_frames_and_reports_are_read_by_the_rules_of_the_page(name: str) -> None:
    """Failure would look like: a period read as decimal text, an order of bytes or bits that the page does not say."""
    scheme = SCHEMES[name]
    for seed, period in enumerate((0, 10, 0x1234ABCD)):
        frame = random_frame(scheme, 20, period, seed)
        frames = [frame, replace(frame, answers={})] if name == "turns" else [frame]
        for sent in frames:
            expected = rows_of(sent, scheme)
            assert wire_page.read(wire_page.FRAME, encode_frame(sent, scheme), asked(scheme)) == expected
            for place, row in enumerate(expected):
                single = encode_report(sent.take(slice(place, place + 1)), scheme)
                assert wire_page.read(wire_page.REPORT, single, asked(scheme)) == [row]
                assert row.token % 7 == partition_of(sent.tokens[place : place + 1], 7)[0]


@pytest.mark.parametrize("through", [-1, 0, 10, 300, (1 << 32) - 2])
def test_clock_records_are_read_and_checked_by_the_rules_of_the_page(through: int) -> None:
    value = encode_clock(Clock("buttons", through), KEY)
    assert wire_page.read(wire_page.CLOCK, value, {}, KEY) == Closing("buttons", through)
    assert decode_clock(value, KEY) == Clock("buttons", through)
    with pytest.raises(AssertionError):
        wire_page.read(wire_page.CLOCK, value, {}, bytes(32))


def dead_letters(scheme: Scheme, *records: tuple[str, bytes]) -> list[Output]:
    """What a counter of partition 0 of 1 refuses."""
    counter = PartitionCounter(0, 1, {scheme.survey.id: scheme}.get, KEY)
    for offset, record in enumerate(records):
        counter.apply(Record(offset, *record))
    return [item for item in counter.flush() if isinstance(item, Output) and item.topic == DEADLETTERS]


def test_dead_letters_are_read_by_the_rules_of_the_page() -> None:
    scheme = SCHEMES["symbols and bits"]
    frame = random_frame(scheme, 20, period=0)
    gaps = frame.gaps.copy()
    gaps[3:5] = 0
    unknown = encode_frame(replace(frame, survey="unknown"), scheme)
    large = b"{" + b" " * (300 << 10)
    letters = [
        wire_page.read_dead_letter(letter.key, dict(letter.headers), letter.value)
        for letter in dead_letters(
            scheme,
            (wire_page.FRAME, encode_frame(frame, scheme)),
            (wire_page.FRAME, unknown),
            (wire_page.FRAME, encode_frame(replace(frame, gaps=gaps), scheme)),
            (wire_page.REPORT, large),
            ("text/plain", b"?"),
        )
    ]
    assert [(letter.reason, letter.offset, letter.rows) for letter in letters] == [
        ("unknown-survey", 1, 20), ("bad-gap", 2, 2), ("too-large", 3, 1), ("undecodable", 4, 1),
    ]  # fmt: skip
    whole, rows, cut, foreign = letters
    assert whole.value == unknown
    assert wire_page.read(whole.content_type, whole.value, asked(scheme)) == [
        row._replace(survey="unknown") for row in rows_of(frame, scheme)
    ]
    assert wire_page.read(rows.content_type, rows.value, asked(scheme)) == [
        row._replace(gap=0) for row in rows_of(frame, scheme)[3:5]
    ]
    assert (cut.value, cut.bytes) == (large[: 64 << 10], len(large))
    assert (foreign.content_type, foreign.value) == ("text/plain", b"?")


def test_the_page_names_the_form_of_the_answers_of_every_mechanism() -> None:
    named = [
        re.findall(r"`([a-z0-9-]+)`", text) for text in re.findall(r"\*\*(?:symbol|bit vector)\*\* \((.*?)\)", PAGE)
    ]
    assert [set(names) for names in named] == [wire_page.SYMBOLS, wire_page.BITS]
    assert set(RECORDS) == wire_page.SYMBOLS | wire_page.BITS
    for name in ("FRAME", "REPORT", "CLOCK", "RESUBMITTED"):
        assert f"`{getattr(wire_page, name)}`" in PAGE


def block(language: str, place: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)\n```", PAGE, re.DOTALL)[place]


EXAMPLE = Scheme(parse_survey(block("yaml")))


def test_the_example_is_what_a_device_sends_and_can_be_read() -> None:
    device = Respondent(EXAMPLE, Keyring(bytes(range(32))))
    question, alone = EXAMPLE.questions[0], np.array([0], dtype=np.uint64)
    answers = {"colour": device.answers(question, alone, 3, np.array([0]))}
    about = EXAMPLE.survey.id, EXAMPLE.fingerprint, 3, device.tokens(alone, 3)
    assert encode_report(Frame(*about, np.array([1], dtype=np.uint16), answers), EXAMPLE).decode() == block("json")
    frame = decode_report(block("json").encode(), {"buttons": EXAMPLE}.get)
    assert isinstance(frame, Frame)
    assert (frame.period, frame.gaps.tolist(), frame.answers["colour"].tolist()) == (3, [1], [2])
    assert partition_of(frame.tokens, 8).tolist() == [5]


def test_the_clock_of_the_example_can_be_made_with_the_standard_library() -> None:
    text = block("json", 1).encode()
    assert wire_page.read(wire_page.CLOCK, text, {}, bytes(32)) == Closing("buttons", 3)
    assert decode_clock(text, bytes(32)) == Clock("buttons", 3)
