"""What a record says that it is about, read without its survey: for records of surveys that are not known."""

from __future__ import annotations

from dataclasses import dataclass

from protocols.wire.arrow import read_head
from protocols.wire.content import CLOCK, FRAME, MAX_ROWS, REPORT
from protocols.wire.header import ReportHeader, read_id
from protocols.wire.strict_json import read_object


@dataclass(frozen=True)
class Named:
    """The survey and the period that a record names. A clock record has no fingerprint, and names `through`."""

    survey: str
    fingerprint: str | None
    period: int


def named(content_type: str, value: bytes) -> Named | None:
    """What a record names; None if it cannot be read. Never raises, whatever the bytes. Nothing else is checked.

    >>> named(CLOCK, b'{"survey":"buttons","through":3,"mac":""}')
    Named(survey='buttons', fingerprint=None, period=3)
    """
    try:
        if content_type == CLOCK:
            record = read_object(value)
            through = record["through"]
            return Named(read_id(record.get("survey")), None, through) if type(through) is int else None
        if content_type == FRAME:
            return _named(ReportHeader.read(read_head(value, MAX_ROWS).metadata))
        if content_type == REPORT:
            return _named(ReportHeader.read(read_object(value)))
    except (ValueError, KeyError):
        pass
    return None


def _named(header: ReportHeader) -> Named:
    return Named(header.survey, header.fingerprint, header.period)
