"""Which events a replay chooses, and which device a person is: compared with the plain definition of each."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from producers.replay.choosing import Events, Rule, choose, event_type, without_duplicates
from producers.replay.people import Distinct


def some_events(order: str, seed: int) -> Events:
    """Many events of few devices, in few moments: with ties, unknown values and duplicates."""
    draw, count = np.random.default_rng(seed), 600
    events = np.empty(count, dtype=event_type(2))
    events["row"] = np.arange(count) * 3
    events["device"] = draw.integers(0, 40, count)
    events["time"] = draw.integers(0, 12, count)
    events["values"] = draw.integers(-1, 3, (count, 2))
    if order == "sorted":
        events["time"].sort()
    return events if order != "shuffled" else draw.permutation(events)


Listed = tuple[int, int, int, tuple[int, ...]]


def listed(events: Events) -> list[Listed]:
    rows = zip(*(events[name].tolist() for name in ("device", "time", "row", "values")), strict=True)
    return [(device, time, row, tuple(values)) for device, time, row, values in rows]


@pytest.mark.parametrize("order", ["sorted", "unsorted", "shuffled"])
def test_duplicates_are_found_and_the_first_of_each_stays(order: str) -> None:
    events = some_events(order, seed=1)
    kept, again = without_duplicates(events)
    first: dict[object, int] = {}
    for device, time, row, values in sorted(listed(events), key=lambda event: event[2]):
        first.setdefault((device, time, values), row)
    assert set(kept["row"].tolist()) == set(first.values())
    assert sorted([*kept["row"].tolist(), *again.tolist()]) == sorted(events["row"].tolist())
    assert listed(kept) == sorted(listed(kept), key=lambda event: (event[0], event[1], event[3], event[2]))


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("order", ["sorted", "unsorted", "shuffled"])
def test_the_value_of_a_period_is_the_one_that_the_rule_names(rule: Rule, order: str) -> None:
    events, _ = without_duplicates(some_events(order, seed=2))
    devices, chosen = choose(events, {"a": rule, "b": rule})
    assert devices.tolist() == sorted(set(events["device"].tolist()))
    for i, name in enumerate(("a", "b")):
        for device, place in zip(devices.tolist(), chosen[name].tolist(), strict=True):
            known = [(time, values[i]) for owner, time, _, values in listed(events) if owner == device]
            known = [(time, value) for time, value in known if value >= 0]
            assert place == (by_definition(rule, known) if known else -1)


def by_definition(rule: Rule, known: list[tuple[int, int]]) -> int:
    """Of moments and values."""
    if rule is not Rule.MOST:
        return (min if rule is Rule.FIRST else max)(known)[1]
    counts = Counter(value for _, value in known)
    return min(counts, key=lambda value: (-counts[value], value))


def test_people_are_counted_exactly_below_the_size_and_about_right_above_it() -> None:
    draw, few = np.random.default_rng(3), Distinct(1000)
    numbers = draw.integers(0, 2**64, 20_000, dtype=np.uint64)
    few.add(np.repeat(numbers[:700], 2))
    assert (few.count(), few.exact) == (700, True)
    for part in np.array_split(numbers, 9):
        few.add(part)
    assert not few.exact and abs(few.count() / 20_000 - 1) < 0.15
