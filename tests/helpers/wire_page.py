"""A reader of records, written from docs/wire-format.md alone: it knows JSON, Arrow and HMAC, and none of our code."""

import hashlib
import hmac
import io
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

FRAME = "application/vnd.hearsay.frame+arrow"
REPORT = "application/vnd.hearsay.report+json"
CLOCK = "application/vnd.hearsay.clock+json"
RESUBMITTED = "application/vnd.hearsay.resubmitted+json"
SYMBOLS = {"grr", "grr-r", "l-grr", "geometric", "l-geometric", "geo-grid", "geo-tight", "loloha", "olh", "threshold"}
BITS = {"sue", "sue-z", "sue-r", "oue", "oue-z", "oue-r", "l-sue", "l-osue", "l-oue", "l-soue", "dbitflip"}

Answer = int | frozenset[int]  # a symbol, or the places of the bits that are set


class Asked(NamedTuple):
    """What `hearsay survey check --json` says about an attribute."""

    mechanism: str
    values: int
    bytes: int


class Row(NamedTuple):
    survey: str
    fingerprint: str
    period: int
    token: int
    gap: int
    answers: dict[str, Answer]


class Closing(NamedTuple):
    survey: str
    through: int


class Refused(NamedTuple):
    """A dead letter: where the record was, why it was refused, and what it held."""

    reason: str
    survey: str
    rows: int
    partition: int
    offset: int
    bytes: int
    content_type: str
    value: bytes


def read(content_type: str, value: bytes, survey: Mapping[str, Asked], key: bytes = b"") -> list[Row] | Closing:
    """A record of the reports topic. `survey` has its attributes in order; `key` is the operator's."""
    assert len(value) <= 4 << 20
    if content_type == FRAME:
        return _frame(value, survey)
    if content_type == REPORT:
        return [_report(value, survey)]
    assert content_type == CLOCK
    return _clock(value, key)


def _report(value: bytes, survey: Mapping[str, Asked]) -> Row:
    assert len(value) <= 256 << 10
    said = json.loads(value)
    assert set(said) == {"survey", "fingerprint", "period", "token", "gap", "answers"}
    token, gap = (int.from_bytes(_hex(said[name], digits), "big") for name, digits in (("token", 16), ("gap", 4)))
    assert [name for name in survey if name in said["answers"]] == list(said["answers"])
    answers = {
        name: _answer(_hex(text, 2 * survey[name].bytes), survey[name]) for name, text in said["answers"].items()
    }
    return Row(*_header(said), token, gap, answers)


def _frame(value: bytes, survey: Mapping[str, Asked]) -> list[Row]:
    with pa.ipc.open_stream(io.BytesIO(value)) as stream:
        (batch,) = stream
    assert 1 <= batch.num_rows <= 65_536 and not any(column.null_count for column in batch.columns)
    header = {name.decode(): text.decode() for name, text in batch.schema.metadata.items()}
    assert set(header) == {"survey", "fingerprint", "period"}
    token, gap, *answered = batch.schema
    assert (token.name, token.type, gap.name, gap.type) == ("token", pa.uint64(), "gap", pa.uint16())
    assert [name for name in survey if name in batch.schema.names] == [field.name for field in answered]
    for field in answered:
        width = survey[field.name].bytes
        whole = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32(), 8: pa.uint64()}
        assert field.type == (whole[width] if _is_symbol(survey[field.name]) else pa.binary(width))
    columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    assert columns["token"] == sorted(columns["token"])
    return [
        Row(
            *_header(header),
            columns["token"][row],
            columns["gap"][row],
            {field.name: _cell(columns[field.name][row], survey[field.name]) for field in answered},
        )
        for row in range(batch.num_rows)
    ]


def _clock(value: bytes, key: bytes) -> Closing:
    said = json.loads(value)
    assert set(said) == {"survey", "through", "mac"} and type(said["through"]) is int
    signed = b"hearsay clock\0" + said["survey"].encode() + b"\0" + said["through"].to_bytes(8, "big", signed=True)
    assert _hex(said["mac"], 64) == hmac.digest(key, signed, hashlib.sha256)
    return Closing(said["survey"], said["through"])


def read_dead_letter(key: bytes, headers: Mapping[str, bytes], value: bytes) -> Refused:
    """A record of the dead-letter topic."""
    said = {name: text.decode() for name, text in headers.items()}
    assert set(said) == {"content-type", "reason", "detail", "survey", "rows", "partition", "offset", "bytes"}
    place = f"{said['partition']}/{said['offset']}/{said['reason']}"
    assert re.fullmatch(re.escape(place) + r"(/[0-9]+)?", key.decode())
    kept = min(int(said["bytes"]), 64 << 10) if said["reason"] == "too-large" else int(said["bytes"])
    assert len(value) == kept
    numbers = (int(said[name]) for name in ("rows", "partition", "offset", "bytes"))
    return Refused(said["reason"], said["survey"], *numbers, said["content-type"], value)


def _header(said: Mapping[str, Any]) -> tuple[str, str, int]:
    _hex(said["fingerprint"], 32)
    return said["survey"], said["fingerprint"], int.from_bytes(_hex(said["period"], 8), "big")


def _hex(text: str, digits: int) -> bytes:
    assert re.fullmatch(f"[0-9a-f]{{{digits}}}", text), f"{text!r} is not {digits} digits"
    return bytes.fromhex(text)


def _is_symbol(asked: Asked) -> bool:
    assert asked.mechanism in SYMBOLS | BITS, asked.mechanism
    return asked.mechanism in SYMBOLS


def _cell(cell: int | bytes, asked: Asked) -> Answer:
    return cell if isinstance(cell, int) else _answer(cell, asked)


def _answer(raw: bytes, asked: Asked) -> Answer:
    if _is_symbol(asked):
        return int.from_bytes(raw, "little")
    bits = frozenset(i for i in range(8 * len(raw)) if raw[i // 8] >> (i % 8) & 1)
    assert len(raw) == (asked.values + 7) // 8 and all(i < asked.values for i in bits), "spare bits are 0"
    return bits
