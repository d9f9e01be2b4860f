"""Checks of what a stranger has written: what does not pass is no terms (docs/device-protocol.md, "Terms")."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import Any, NoReturn

from hearsay_device.errors import refuse


def not_terms(what: str) -> NoReturn:
    refuse("terms", f"these are not the terms of a survey: {what}", "do not answer it")


def need(condition: Any, what: str) -> None:
    if not condition:
        not_terms(what)


def parsed(data: bytes) -> Any:
    """JSON in which no key is there twice: another reader may take the other one."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), "a key twice")
        return dict(pairs)

    return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=not_terms)


def keys(record: Any, known: str, what: str) -> None:
    """A key that is not known might change what an answer means."""
    need(isinstance(record, dict) and record.keys() <= set(known.split()), f"{what} has a key that is not known")


def text(given: Any) -> str:
    """Half of a surrogate pair has no bytes in UTF-8."""
    return given if isinstance(given, str) and not re.search("[\ud800-\udfff]", given) else not_terms("text")


def matching(pattern: str, given: Any, what: str) -> re.Match[str]:
    return re.fullmatch(pattern, text(given), re.ASCII) or not_terms(what)


def listed(given: Any, most: int, what: str) -> list[Any]:
    return given if isinstance(given, list) and 0 < len(given) <= most else not_terms(what)


def whole(given: Any, least: int, most: int, what: str) -> int:
    return given if type(given) is int and least <= given <= most else not_terms(what)


def number(given: Any) -> bool:
    return type(given) in (int, float) and isfinite(given)


def one_of(given: Any, known: Iterable[Any], what: str) -> Any:
    return given if type(given) in (str, int) and given in known else not_terms(what)


def sum_to_1(given: list[Any], what: str) -> tuple[float, ...]:
    need(all(number(share) and 1e-6 <= share < 1 for share in given) and abs(sum(given) - 1) < 1e-9, what)
    return tuple(given)
