"""What people are drawn from, of a user's own table: `first, last, attribute, value, people, error`."""

from collections.abc import Sequence
from datetime import date
from math import isfinite
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lab.people.drawing import Aggregates, Following
from lab.people.fitting import Windows, fit
from lab.people.splitting import ByValue
from producers.people import proportional, shuffled, whole
from protocols.errors import ReplayError, SettingsError

COLUMNS = ("first", "last", "attribute", "value", "people", "error")
NEEDED = ("first", "last", "people")
MOST_DAYS = 1000


class _Row(NamedTuple):
    first: int
    last: int
    attribute: str
    value: str
    people: float
    error: float


def table_aggregates(
    table: pa.Table, name: str, lasting: Sequence[str], stay: tuple[str, float] | None, seed: int
) -> Aggregates:
    """What a table says. Days are whole numbers or dates; a value that is left out of a window has nobody."""
    rows, dated = _rows(table, name)
    origin = min(row.first for row in rows) - 1
    days = max(row.last for row in rows) - origin
    if days > MOST_DAYS:
        raise ReplayError(f"{name} is about {days:,} days", f"give at most {MOST_DAYS:,}")
    by_attribute: dict[str, list[_Row]] = {}
    for row in rows:
        by_attribute.setdefault(row.attribute, []).append(
            row._replace(first=row.first - origin, last=row.last - origin)
        )
    visitors = by_attribute.pop("", [])
    if not visitors or max(row.last for row in visitors) < days or min(row.first for row in visitors) > 1:
        raise ReplayError(
            f"{name} does not say how many people came on all of its days",
            "add rows without an attribute: the different people of single days and of longer windows",
        )
    for one in [*lasting, *([stay[0]] if stay else [])]:
        if one not in by_attribute:
            raise SettingsError(f"{name} has no attribute {one!r}", f"it has: {', '.join(by_attribute) or 'none'}")
    windows = Windows(
        np.array([(row.first, row.last) for row in visitors]),
        np.array([row.people for row in visitors]),
        np.array([row.error for row in visitors]),
    )
    flows = whole(fit(windows))
    values = {one: list(dict.fromkeys(row.value for row in found)) for one, found in by_attribute.items()}
    daily = {one: listed for one, listed in values.items() if one not in lasting}
    rng, records = np.random.default_rng(seed), []
    for one in daily:
        if long := [row for row in by_attribute[one] if row.first < row.last]:
            raise SettingsError(
                f"{one!r} is given for days {long[0].first} to {long[0].last} together",
                "name it in --lasting if people keep it, or give single days only",
            )
    for day in range(1, days + 1):
        counts = {one: _by_value([row for row in by_attribute[one] if row.first == day], daily[one]) for one in daily}
        there = int(flows[:, day].sum())
        given = {one: np.rint(np.maximum(found.people[0], 0)) for one, found in counts.items() if len(found.people)}
        records.append({one: shuffled(rng, proportional(found, there)) for one, found in given.items() if found.sum()})
    same = stay and np.arange(len(values[stay[0]]))
    return Aggregates(
        source={"file": name, "about": f"of the aggregates in {name}"},
        days=[str(origin + day) if not dated else str(date.fromordinal(origin + day)) for day in range(1, days + 1)],
        flows=flows,
        horizon=windows.horizon,
        windows=windows,
        lasting={one: (values[one], _by_value(by_attribute[one], values[one])) for one in lasting},
        daily=daily,
        records=records,
        following=None if stay is None or same is None else Following(stay[0], stay[1], same, same),
        notes=["attributes of a day are independent of each other"] if len(daily) > 1 else [],
    )


def _by_value(rows: Sequence[_Row], values: Sequence[str]) -> ByValue:
    windows = list(dict.fromkeys((row.first, row.last) for row in rows))
    people, error = np.zeros((2, len(windows), len(values)))
    for row in rows:
        place = windows.index((row.first, row.last)), values.index(row.value)
        people[place], error[place] = row.people, row.error
    return ByValue(np.array(windows, dtype=np.int64).reshape(-1, 2), people, error)


def _rows(table: pa.Table, name: str) -> tuple[list[_Row], bool]:
    """The rows, and whether their days are dates."""
    if lacking := [column for column in NEEDED if column not in table.column_names]:
        raise ReplayError(f"{name} has no column {lacking[0]!r}", f"its columns must be {', '.join(COLUMNS)}")
    columns = [table[column].to_pylist() if column in table.column_names else [""] * len(table) for column in COLUMNS]
    dated, found, seen = not columns[0][0].isdigit(), [], set()
    for number, cells in enumerate(zip(*columns, strict=True), 1):
        try:
            first, last = (date.fromisoformat(cell).toordinal() if dated else int(cell) for cell in cells[:2])
            people, error = float(cells[4]), float(cells[5] or 0)
        except ValueError:
            raise ReplayError(
                f"{name}, row {number}: a day, a number of people or an error cannot be read",
                "write days all as 1, 2, 3 or all as 2026-05-31, and people and errors as numbers",
            ) from None
        if not (first <= last and isfinite(people) and isfinite(error) and error >= 0 and (people >= 0 or error)):
            raise ReplayError(
                f"{name}, row {number}: it ends before it begins, or a number is negative or not finite",
                "write first <= last, and errors of 0 or more",
            )
        if (key := (first, last, cells[2], cells[3])) in seen:
            raise ReplayError(f"{name}, row {number}: these days, attribute and value are there before", "keep one")
        seen.add(key)
        found.append(_Row(first, last, cells[2], cells[3], people, error))
    return found, dated
