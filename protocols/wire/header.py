"""The header of every report: its survey, the fingerprint of the survey's terms, and its period.

JSON from untrusted senders is read strictly: in UTF-8, without duplicate keys, without NaN and infinities.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from protocols.scheme import Scheme
from protocols.survey.model import ID_PATTERN
from protocols.wire.arrow import read_head
from protocols.wire.content import CLOCK, FRAME, REPORT, Reason, Reject


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


Lookup = Callable[[str], Scheme | None]  # survey id -> its compiled form

_ID = re.compile(ID_PATTERN)
_HEX = re.compile(r"[0-9a-f]*")


@dataclass(frozen=True)
class ReportHeader:
    """The header of a frame or a report. Numbers have a fixed width in hexadecimal, so that lengths reveal nothing."""

    survey: str
    fingerprint: str
    period: int

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "ReportHeader":
        """Read it from a record; raises ValueError."""
        texts = record.get("survey"), record.get("fingerprint"), record.get("period")
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("survey, fingerprint and period are not all text")
        return _read_header(*texts)

    def write(self) -> dict[str, str]:
        return {"survey": self.survey, "fingerprint": self.fingerprint, "period": f"{self.period:08x}"}

    def scheme(self, lookup: Lookup, rows: int = 1) -> Scheme | Reject:
        """The compiled survey of these reports; a Reject if it is not published, or published with other terms."""
        scheme = lookup(self.survey)
        if scheme is None:
            return Reject(Reason.UNKNOWN_SURVEY, f"no survey {self.survey!r} is published", rows=rows)
        if self.fingerprint != scheme.fingerprint:
            return Reject(Reason.WRONG_FINGERPRINT, "made under other terms", self.survey, rows)
        if self.period > scheme.last_period:
            detail = f"period {self.period} is after the survey's last one, {scheme.last_period}"
            return Reject(Reason.TOO_FAR_AHEAD, detail, self.survey, rows)
        return scheme


@lru_cache(maxsize=256)  # senders repeat the same header
def _read_header(survey: str, fingerprint: str, period: str) -> ReportHeader:
    digest = read_hex(fingerprint, 16, "fingerprint").hex()
    return ReportHeader(read_id(survey), digest, int.from_bytes(read_hex(period, 4, "period"), "big"))


def read_id(text: Any) -> str:
    """The id of a survey; raises ValueError for any other text."""
    if not isinstance(text, str) or not _ID.fullmatch(text):
        raise ValueError("survey is not the id of a survey")
    return text


def read_hex(text: Any, size: int, what: str) -> bytes:
    """`size` bytes from twice as many lower-case hexadecimal digits; raises ValueError."""
    if not isinstance(text, str) or len(text) != 2 * size or not _HEX.fullmatch(text):
        raise ValueError(f"{what} is not {2 * size} lower-case hexadecimal digits")
    return bytes.fromhex(text)


def named(content_type: str, value: bytes) -> ReportHeader | None:
    """What a record names; None if it cannot be read. Never raises, whatever the bytes. Nothing else is checked.

    A clock record names its `through`, and no fingerprint.

    >>> named(CLOCK, b'{"survey":"buttons","through":3,"mac":""}')
    ReportHeader(survey='buttons', fingerprint='', period=3)
    """
    try:
        if content_type == CLOCK:
            record = read_object(value)
            through = record["through"]
            return ReportHeader(read_id(record.get("survey")), "", through) if type(through) is int else None
        if content_type == FRAME:
            return ReportHeader.read(read_head(value).metadata)
        if content_type == REPORT:
            return ReportHeader.read(read_object(value))
    except (ValueError, KeyError):
        pass
    return None
