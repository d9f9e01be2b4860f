"""Virtual people: each comes on some days and has values, so that the aggregates they are drawn from come out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lab.people.fitting import Windows
from lab.people.flows import beyond, rejoined, unique_people
from lab.people.splitting import ByValue, combinations, handed, split
from producers.people import ABSENT, Flows, deal
from protocols.arrays import Places, Values
from protocols.errors import SettingsError

Day = Mapping[str, Values]
"""The records of a day by attribute: as many as people are present."""
Lasting = tuple[Sequence[str], ByValue]
"""The values of an attribute whose value a person keeps, and what is published about them."""


@dataclass(frozen=True, eq=False)
class Following:
    """How values of a day follow those of a person's day before: a record begins where the last one ended.

    `begins` and `ends` have the place where each value begins and ends. `share` of people follow, as far as records do.
    """

    attribute: str
    share: float
    begins: Values
    ends: Values


@dataclass(frozen=True, eq=False)
class Aggregates:
    """What people are drawn from. Nobody returns in `flows` after a horizon or longer; `windows` are what they follow.

    `records` are made for a day, of which so many people are present; `daily` has the values of their attributes.
    """

    source: dict[str, Any]
    days: Sequence[str]
    flows: Flows
    horizon: int
    windows: Windows
    lasting: Mapping[str, Lasting]
    daily: Mapping[str, Sequence[str]]
    records: Sequence[Day]
    following: Following | None = None
    notes: Sequence[str] = field(default_factory=list)


def draw_people(given: Aggregates, people: int | None, seed: int) -> pa.Table:
    """A row for each person and day. What they follow is metadata: `hearsay` as JSON, `about` in lines."""
    rng = np.random.default_rng(seed)
    most = int(given.flows[0].sum())
    fewest = most - int(beyond(given.flows, given.horizon).sum())
    wanted = most if people is None else people
    if not fewest <= wanted <= most:
        raise SettingsError(
            f"{wanted:,} people", f"between {fewest:,} and {most:,} people can have caused what is published"
        )
    flows = rejoined(given.flows, given.horizon, most - wanted, rng)
    present, values, missed = _dealt(flows, given.lasting, rng)
    missed_windows = np.abs(given.windows.missed(unique_people(flows)))
    facts = {
        **given.source,
        "seed": seed,
        "people": wanted,
        "fewest": fewest,
        "most": most,
        "horizon": given.horizon,
        "windows": len(missed_windows),
        "windows_exact": int((missed_windows < 0.5).sum()),
        "windows_missed_by": float(missed_windows.max()),
        "lasting": missed,
        "daily": list(given.daily),
        "following": given.following and {given.following.attribute: given.following.share},
        "notes": list(given.notes),
    }
    columns = _columns(given, present, values, rng)
    return pa.table(columns, metadata={"hearsay": json.dumps(facts), "about": "\n".join(_lines(facts))})


def _dealt(
    flows: Flows, lasting: Mapping[str, Lasting], rng: np.random.Generator
) -> tuple[list[Places], dict[str, Values], dict[str, float]]:
    """The people of each day, the lasting values of each person, and by how many people at most a count is missed."""
    if not lasting:
        return deal(flows, rng), {}, {}
    asked = [published for _, published in lasting.values()]
    parts = split(flows, asked)
    sizes = [int(part[0].sum()) for part in parts]
    numbers = rng.permutation(sum(sizes))  # otherwise numbers would show values
    begin, days = np.cumsum([0, *sizes]), [deal(part, rng) for part in parts]
    present: list[Places] = [
        np.sort(numbers[np.concatenate([start + there for start, there in zip(begin, day, strict=False)])])
        for day in zip(*days, strict=True)
    ]
    values: dict[str, Values] = {}
    missed = {}
    for place, (name, (named, published)) in enumerate(lasting.items()):
        chosen = combinations(asked)[:, place]
        values[name] = np.empty(len(numbers), dtype=np.int64)
        values[name][numbers] = np.repeat(chosen, sizes)
        first, last = published.bounds.T
        counts = np.array([unique_people(part)[first, last] for part in parts])
        shown = np.array([counts[chosen == value].sum(axis=0) for value in range(len(named))]).T
        missed[name] = float(np.abs(shown - published.people).max())
    return present, values, missed


def _columns(
    given: Aggregates, present: Sequence[Places], values: Mapping[str, Values], rng: np.random.Generator
) -> dict[str, pa.Array]:
    before = np.full(1 + max((int(day[-1]) for day in present if len(day)), default=0), ABSENT, dtype=np.int64)
    parts: dict[str, list[Values]] = {name: [] for name in given.daily}
    for there, records in zip(present, given.records, strict=True):
        order, following = rng.permutation(len(there)), given.following
        if following and following.attribute in records:
            column = records[following.attribute]
            order = handed(rng, following.begins[column], before[there], following.share)
            before[there] = following.ends[column[order]]
        for name, found in parts.items():
            found.append(records[name][order] if name in records else np.full(len(there), ABSENT))
    person, day = np.concatenate(present), np.repeat(np.arange(len(present)), [len(there) for there in present])
    order = np.lexsort((day, person))
    columns = {"person": pa.array(person[order] + 1), "day": _named(day[order], given.days)}
    for name, (named, _) in given.lasting.items():
        columns[name] = _named(values[name][person[order]], named)
    for name, named in given.daily.items():
        columns[name] = _named(np.concatenate(parts[name])[order], named)
    return columns


def _named(places: Values, names: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32(), mask=places == ABSENT), pa.array(names))


def _lines(facts: Mapping[str, Any]) -> list[str]:
    """What the people follow, for people, in lines that can stand above them."""
    said = [
        f"{facts['people']:,} virtual people, {facts['about']}, seed {facts['seed']}. Nobody's data: drawn from "
        "aggregates.",
        f"windows: {facts['windows']:,} followed, {facts['windows_exact']:,} of them exactly; missed by at most "
        f"{facts['windows_missed_by']:,.0f} people. On which days a person comes together is not known: it follows by "
        "maximum entropy",
    ]
    if facts["fewest"] < facts["most"]:
        said.append(
            f"people in all: between {facts['fewest']:,} and {facts['most']:,}. Nobody knows who was away for "
            f"{facts['horizon']} days or longer and returned, and who is new; --people chooses"
        )
    for name, missed in facts["lasting"].items():
        said.append(f"{name} lasts, and goes with presence as published; counts are missed by at most {missed:,.0f}")
    if len(facts["lasting"]) > 1:
        said.append(f"given presence, {' and '.join(facts['lasting'])} are independent")
    following = facts["following"] or {}
    for name, share in following.items():
        said.append(f"{name} is dealt on each day: {share:.0%} of people go on from their day before, if they can")
    if anew := [name for name in facts["daily"] if name not in following]:
        said.append(f"{', '.join(anew)}: dealt on each day, independent from day to day")
    return [*said, *facts["notes"]]
