"""What is released of a window: numbers of devices, and tables of answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from protocols.arrays import Whole


@dataclass(frozen=True, eq=False)
class Table:
    """The released answers to one question: `N[value]` of `n` support each value.

    `periods` is of how many tables it is the sum: one of a single period, or of the first reports of a window.
    """

    n: int
    N: Whole
    periods: int = 1

    def add(self, other: "Table") -> "Table":
        return Table(self.n + other.n, self.N + other.N, self.periods + other.periods)


Tables = Mapping[str, Table]  # by question


def add_tables(ours: Tables, theirs: Tables) -> dict[str, Table]:
    """The sum of the tables of both, by question."""
    found = dict(ours)
    for name, table in theirs.items():
        found[name] = found[name].add(table) if name in found else table
    return found


@dataclass(frozen=True, eq=False)
class WindowNumbers:
    """What is released of one window that ends with a period.

    Numbers are None where they are not released. With noise they may be negative; `noises` is how many noises the
    visitors have. `visits` are tables of all reports of the window, `firsts` of the first
    report of each device in it.
    """

    kind: str
    first: int
    visitors: int | None = None
    new: int | None = None
    returning: int | None = None
    noises: int = 1
    late: int | None = None
    visits: Tables = field(default_factory=dict)
    firsts: Tables = field(default_factory=dict)

    @property
    def head(self) -> dict[str, Any]:
        """All but the tables, for JSON; what is None is left out."""
        names = ("kind", "first", "visitors", "new", "returning", "noises", "late")
        found = {name: getattr(self, name) for name in names}
        return {name: part for name, part in found.items() if part is not None}
