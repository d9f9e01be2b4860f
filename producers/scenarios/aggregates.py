"""Published counts of a population over some days: the table from which `virtual-humans` are drawn.

Days are numbered from 1. A set of days is written `3`, `2-4` or `1+3+7`. A table file is JSON with the keys of
`Aggregates`. Unknown keys, and counts that do not add up, are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from producers.scenarios.base import MOST_DEVICES
from producers.scenarios.presence import MOST_DAYS, combinations_from_unions, day_names, people_seen
from protocols.errors import ScenarioError
from servers.private_files import read_limited

MAX_BYTES = 16 << 20
Count = Annotated[int, Field(ge=0, le=MOST_DEVICES)]


class Aggregates(BaseModel):
    """What was published about a population, and its source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    license: str
    cite: str = ""
    notes: tuple[str, ...] = ()
    people: int = Field(ge=1, le=MOST_DEVICES)
    days: tuple[str, ...] = Field(min_length=1, max_length=MOST_DAYS)
    combinations: dict[str, Count] = {}
    """People who came on exactly these days. If it is empty, presence.py derives them from the unions."""
    unions: dict[str, Count] = {}
    """People who came on at least one of these days."""
    attributes: dict[str, dict[str, Count]] = {}
    """Attribute -> value -> people: attributes that do not change from day to day."""
    daily: dict[str, dict[str, tuple[Count, ...]]] = {}
    """Attribute -> value -> people on each day."""
    distinct: dict[str, tuple[Count, ...]] = {}
    """Daily attribute -> people who showed one, two, three ... different values."""

    def people_per_combination(self) -> NDArray[np.int64]:
        """People per exact set of days; the index has a bit for each day of the set."""
        if not self.combinations:
            return combinations_from_unions(len(self.days), self._by_bits(self.unions))
        people = np.zeros(2 ** len(self.days), dtype=np.int64)
        for days, count in self._by_bits(self.combinations).items():
            people[days] = count
        return people

    def people_per_union(self) -> dict[int, int]:
        """People per published union of days; for all unions, if the combinations are published."""
        if not self.combinations:
            return self._by_bits(self.unions)
        unions = list(range(1, 2 ** len(self.days)))
        counts = people_seen(len(self.days), unions) @ self.people_per_combination()[1:]
        return dict(zip(unions, counts.tolist(), strict=True))

    def _by_bits(self, counts: dict[str, int]) -> dict[int, int]:
        by_bits = {day_bits(days, len(self.days)): count for days, count in counts.items()}
        if len(by_bits) < len(counts):
            raise ValueError("the same set of days has two counts")
        return by_bits

    @model_validator(mode="after")
    def _adds_up(self) -> Aggregates:
        if not self.combinations and not self.unions:
            raise ValueError("give `combinations`, or `unions` to derive them from")
        lists = [(name, counts) for name, values in self.daily.items() for counts in values.values()]
        for name, counts in [*lists, *self.distinct.items()]:
            if len(counts) != len(self.days):
                raise ValueError(f"{name} needs {len(self.days)} counts in each list, for {len(self.days)} days")
        if unknown := self.distinct.keys() - self.daily.keys():
            raise ValueError(f"distinct: {', '.join(sorted(unknown))} is not a daily attribute")
        if self.daily and not {1 << day for day in range(len(self.days))} <= self.people_per_union().keys():
            raise ValueError("daily attributes need the people of every single day among the unions")
        for where, total, expected in self._sums():
            if total != expected:
                raise ValueError(f"{where} are {total}, but other counts give {expected}")
        return self

    def _sums(self) -> Iterator[tuple[str, int, int]]:
        """Pairs of counts that must be equal: a description, the count, and the same count from elsewhere."""
        known = self.people_per_union()
        yield "the people of all days", known.get(2 ** len(self.days) - 1, self.people), self.people
        for days, count in self._by_bits(self.unions).items():
            yield f"the people of {day_names(days)}", count, known[days]
        for name, counts in self.attributes.items():
            yield f"the people by {name}", sum(counts.values()), self.people
        for name, shown in self.distinct.items():
            yield f"the people by different values of {name}", sum(shown), self.people
        for name, values in self.daily.items():
            for day, on_day in enumerate(zip(*values.values(), strict=True)):
                yield f"the people of day {day + 1} by {name}", sum(on_day), known[1 << day]


def day_bits(days: str, how_many: int) -> int:
    """A set of days as bits.

    >>> bin(day_bits("1+3-5", 7))
    '0b11101'
    """
    bits = 0
    try:
        for part in days.split("+"):
            first, _, last = part.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            if not numbers or not 1 <= numbers[0] <= numbers[-1] <= how_many:
                raise ValueError
            bits |= sum(1 << number - 1 for number in numbers)
    except ValueError:
        raise ValueError(f"{days!r} is not a set of days 1 to {how_many}: write 3, 2-4 or 1+3") from None
    return bits


def read_aggregates(path: Path | None = None) -> Aggregates:
    """Read a table file; without a path, the festival week that comes with the package.

    >>> week = read_aggregates()
    >>> week.people, len(week.days), week.cite
    (88935, 7, 'doi:10.1109/iwcmc48107.2020.9148138')
    """
    where = resources.files("producers") / "data" / "msfimu.json" if path is None else path
    try:
        data = where.read_bytes() if path is None else read_limited(path, MAX_BYTES)
        return Aggregates.model_validate(json.loads(data))
    except OSError as error:
        raise ScenarioError(f"the table {where} cannot be read: {error}", "give the path of a JSON file") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or not a table
        raise ScenarioError(f"the table {where} is not valid: {error}") from error
