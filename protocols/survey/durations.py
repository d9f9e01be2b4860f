"""Durations as people write them: `15m`, `1h`, `1d`, `1w`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PATTERN = r"^[0-9]{1,9}[smhdw]$"


def parse_duration(text: Any) -> timedelta:
    """A timedelta from text such as `90m`.

    >>> parse_duration("36h")
    datetime.timedelta(days=1, seconds=43200)
    """
    if isinstance(text, timedelta) and text >= timedelta(0) and not text % timedelta(seconds=1):
        return text
    if not isinstance(text, str) or not re.fullmatch(_PATTERN, text):
        raise ValueError("not a duration; write a whole number and s, m, h, d or w, such as 15m or 1d")
    seconds = int(text[:-1]) * _UNITS[text[-1]]
    if seconds > timedelta.max.total_seconds():
        raise ValueError("longer than time is counted; write less")
    return timedelta(seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """The shortest text that parses back.

    >>> format_duration(timedelta(hours=36)), format_duration(timedelta(0))
    ('36h', '0s')
    """
    seconds = int(duration.total_seconds())
    for unit, size in reversed(_UNITS.items()):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _PATTERN, "examples": ["15m", "1h", "1d"]}),
]
