"""Roles: what mobility reports take an attribute for, and how the values of each role are written."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from protocols.survey.names import parse_duration

ARROW: Final = ">"
_TIME = r"([0-9]+[smhdw]?)"
_DWELL = re.compile(rf"{_TIME}(?:-{_TIME})?")
HOUR = timedelta(hours=1)


def check_role(role: str, values: Sequence[str]) -> None:
    """Raise ValueError if the values are not what the role needs.

    >>> check_role("transition", ["north>south", "south"])
    Traceback (most recent call last):
    ValueError: 'south' is not a transition; write an origin, > and a destination, such as north>south
    """
    if role == "dwell":
        dwell_times(values)
    elif role == "amount" and dwell_times(values)[1]:
        raise ValueError(f"{values[0]!r} is not a number; leave the units out, or choose the role dwell")
    elif role == "transition":
        seen: set[tuple[str, str]] = set()
        for value in values:
            pair = origin_and_destination(value)
            if pair in seen:
                raise ValueError(f"{value!r} is the transition {ARROW.join(pair)} again; name each one once")
            seen.add(pair)


def origin_and_destination(value: str) -> tuple[str, str]:
    """The two places of a transition.

    >>> origin_and_destination("north > south")
    ('north', 'south')
    """
    places = [place.strip() for place in value.split(ARROW)]
    if len(places) != 2 or not all(places) or places[0].endswith(("-", "=")):  # an arrow of two characters
        raise ValueError(
            f"{value!r} is not a transition; write an origin, {ARROW} and a destination, such as north{ARROW}south"
        )
    return places[0], places[1]


def dwell_times(values: Sequence[str]) -> tuple[list[tuple[float, float]], str]:
    """The shortest and the longest time of each value, and their unit: hours, or none for plain numbers.

    >>> dwell_times(["1h", "90m-5h"])
    ([(1.0, 1.0), (1.5, 5.0)], 'hours')
    """
    times: list[tuple[float, float]] = []
    with_unit = not values[0][-1].isdigit()
    for value in values:
        found = _DWELL.fullmatch(value)
        if found is None:
            raise ValueError(
                f"{value!r} is not a dwell time; write a whole number or a duration, such as 15 or 2h, or a range, "
                "such as 3h-5h"
            )
        ends = [text for text in found.groups() if text]
        if any(text[-1].isdigit() == with_unit for text in ends):
            raise ValueError(f"{value!r} and {values[0]!r}: give all dwell times a unit, or none")
        try:
            low, high = _number(ends[0]), _number(ends[-1])
        except ValueError as error:
            raise ValueError(f"{value!r}: {error}") from None
        if low > high:
            raise ValueError(f"{value!r} ends before it begins; write {ends[1]}-{ends[0]}")
        if times and (low < times[-1][1] or high <= times[-1][1]):
            before = values[len(times) - 1]
            raise ValueError(f"{value!r} after {before!r}: list dwell times in ascending order, without overlaps")
        times.append((low, high))
    return times, "hours" if with_unit else ""


def _number(text: str) -> float:
    """Hours of a duration, or a number.

    >>> _number("90m"), _number("15")
    (1.5, 15.0)
    """
    return float(text) if text[-1].isdigit() else parse_duration(text) / HOUR
