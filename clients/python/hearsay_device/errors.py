"""What a device refuses, and checks of what a stranger has written (docs/device-protocol.md, "Terms")."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite
from typing import Any, NoReturn


class HearsayError(Exception):
    """The root of all that hearsay raises on purpose. `message`: what was wrong, and where; `hint`: what to do."""

    retriable = False

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class DeviceError(HearsayError):
    """A person's device refuses. `code` says why, for programs (docs/device-protocol.md). It never has a value.

    `again_at`: if sending failed, when the next owed report is due.
    """

    again_at: float | None = None

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


def refuse(code: str, message: str, hint: str = "") -> NoReturn:
    raise DeviceError(code, message, hint)


def not_terms(what: str) -> NoReturn:
    refuse("terms", f"these are not the terms of a survey: {what}", "do not answer it")


def need(condition: Any, what: str) -> None:
    if not condition:
        not_terms(what)


def keys(record: Any, known: str, what: str) -> None:
    """A key that is not known might change what an answer means."""
    need(isinstance(record, dict) and record.keys() <= set(known.split()), f"{what} has a key that is not known")


def text(given: Any, pattern: str = "(?s).*", what: str = "text") -> str:
    """Half of a surrogate pair has no bytes in UTF-8."""
    need(isinstance(given, str) and not re.search("[\ud800-\udfff]", given), "text")
    return str(given) if re.fullmatch(pattern, given, re.ASCII) else not_terms(what)


def listed(given: Any, most: int, what: str) -> list[Any]:
    return given if isinstance(given, list) and 0 < len(given) <= most else not_terms(what)


def whole(given: Any, least: int, most: int, what: str) -> int:
    return given if type(given) is int and least <= given <= most else not_terms(what)


def number(given: Any) -> bool:
    return type(given) in (int, float) and isfinite(given)


def one_of(given: Any, known: Iterable[Any], what: str) -> Any:
    return given if type(given) in (str, int) and given in known else not_terms(what)


def sum_to_1(shares: list[Any], what: str) -> tuple[float, ...]:
    need(all(number(share) and 1e-6 <= share < 1 for share in shares) and abs(sum(shares) - 1) < 1e-9, what)
    return tuple(shares)
