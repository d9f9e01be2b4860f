"""Single reports: what is sent is what is read, at one length, and nothing but reports is read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.scheme import Scheme
from protocols.wire import Frame, Reason, Reject, decode_report
from tests.helpers.frames import encode_report, make_scheme, random_frame, same

SCHEME = make_scheme(3, 100, 300, solution="spl")
DISCLOSING = make_scheme(3, 100)
SCHEMES = [SCHEME, DISCLOSING, make_scheme(2), make_scheme(40, eps_inf=None, eps_1=None, eps=1.0, horizon=7)]
RECORD: dict[str, Any] = json.loads(encode_report(random_frame(SCHEME, 1), SCHEME))


def decode(data: bytes, scheme: Scheme = SCHEME) -> Frame | Reject:
    return decode_report(data, {scheme.survey.id: scheme}.get)


def refused(data: bytes, scheme: Scheme = SCHEME) -> Reject:
    reject = decode(data, scheme)
    assert isinstance(reject, Reject)
    return reject


@given(st.sampled_from(SCHEMES), st.integers(0, (1 << 32) - 2), st.integers(0, 1 << 30))
def test_what_is_sent_is_what_is_read(scheme: Scheme, period: int, seed: int) -> None:
    frame = random_frame(scheme, 1, period, seed)
    decoded = decode(encode_report(frame, scheme), scheme)
    assert isinstance(decoded, Frame)
    assert same(decoded, frame)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_reports_of_one_survey_that_answer_the_same_attributes_are_as_long(scheme: Scheme) -> None:
    by_answers: dict[tuple[str, ...], set[int]] = {}
    for seed in range(50):
        frame = random_frame(scheme, 1, period=7**seed % (1 << 32), seed=seed)
        by_answers.setdefault(tuple(frame.answers), set()).add(len(encode_report(frame, scheme)))
    assert [len(lengths) for lengths in by_answers.values()] == [1] * len(by_answers)


def test_order_and_spaces_do_not_matter() -> None:
    shuffled = {key: RECORD[key] for key in reversed(RECORD)}
    shuffled["answers"] = {name: RECORD["answers"][name] for name in reversed(RECORD["answers"])}
    decoded = decode(json.dumps(shuffled, indent=2).encode())
    assert isinstance(decoded, Frame)
    assert same(decoded, random_frame(SCHEME, 1))


def test_reports_under_other_terms_are_refused() -> None:
    data = json.dumps(RECORD).encode()
    assert refused(data, make_scheme(3, 100, 300, solution="spl", horizon=2)).reason is Reason.WRONG_FINGERPRINT
    assert refused(data, make_scheme(3, 100, 300, id="other")).reason is Reason.UNKNOWN_SURVEY


ANSWERS = RECORD["answers"]
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "a number for a token": ({"token": 1}, "token"),
    "a short token": ({"token": "1"}, "token"),
    "capitals": ({"token": "ABCDEFABCDEFABCD"}, "token"),
    "digits of another script": ({"gap": "٠٠٠١"}, "gap"),
    "a negative gap": ({"gap": "-001"}, "gap"),
    "a decimal period": ({"period": 3}, "period"),
    "a further key": ({"device": "me"}, "keys"),
    "a survey that is not text": ({"survey": ["s"]}, "survey"),
    "half a surrogate pair": ({"survey": "\ud800"}, "survey"),
    "no fingerprint": ({"fingerprint": None}, "fingerprint"),
    "answers that are a list": ({"answers": list(ANSWERS)}, "answers"),
    "an answer too few": ({"answers": {"a0": ANSWERS["a0"]}}, "all of its attributes"),
    "an answer to nothing asked": ({"answers": ANSWERS | {"b": "00"}}, "answers"),
    "an answer too short": ({"answers": ANSWERS | {"a1": "00"}}, "a1 is not 26"),
    "an answer that is a number": ({"answers": ANSWERS | {"a0": 1}}, "a0"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_a_report_of_the_survey_is_refused_and_says_why(change: str) -> None:
    fields, word = CHANGES[change]
    reject = refused(json.dumps(RECORD | fields).encode())
    assert (reject.reason, word in reject.detail) == (Reason.UNDECODABLE, True), reject


def test_a_survey_that_discloses_takes_exactly_one_answer() -> None:
    record = json.loads(encode_report(random_frame(DISCLOSING, 1), DISCLOSING))
    record["answers"] = {"a0": "00", "a1": "00" * 13}
    assert "one of its attributes" in refused(json.dumps(record).encode(), DISCLOSING).detail


TEXT = json.dumps(RECORD)
NOT_JSON = {
    "nothing": b"",
    "a key twice": TEXT[:-1].encode() + b', "gap": "0001"}',
    "an answer twice": TEXT.replace('"a0":', '"a0": "00", "a0":').encode(),
    "not a number": TEXT.replace('"gap": "', '"gap": NaN, "x": "').encode(),
    "an infinity": b'{"survey": -Infinity}',
    "a huge number": b'{"survey": ' + b"9" * 100_000 + b"}",
    "another encoding": TEXT.encode("utf-16"),
    "bytes of no encoding": b'{"survey": "\xff"}',
    "a mark of byte order": b"\xef\xbb\xbf" + TEXT.encode(),
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 40_000,
    "a list": b"[]",
    "a word": b"null",
    "two objects": TEXT.encode() * 2,
    "a zero byte": TEXT.encode() + b"\0",
}


@pytest.mark.parametrize("bytes_", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_one_json_object_is_refused(bytes_: bytes) -> None:
    assert refused(bytes_).reason is Reason.UNDECODABLE


def test_a_report_too_large_is_not_even_parsed() -> None:
    assert refused(b" " * (1 << 20)).reason is Reason.TOO_LARGE
