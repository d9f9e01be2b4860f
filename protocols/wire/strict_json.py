"""Strict JSON from untrusted senders: in UTF-8, without duplicate keys, without NaN and infinities."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def read_object(data: bytes) -> dict[str, Any]:
    """The object in these bytes. Raises ValueError, and nothing else, whatever the bytes.

    >>> read_object(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: not JSON: a key twice
    """
    value = read_json(data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def read_json(data: bytes) -> Any:
    """Any JSON value; raises ValueError, and nothing else."""
    try:
        return _DECODER.decode(data.decode())
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError("not JSON: nested too deeply") from None


def write_object(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("not JSON: a key twice")
    return record


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"not JSON: {constant}")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)
