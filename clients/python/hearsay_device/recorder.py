"""Many events of a period become the one value of its report."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from hearsay_device.errors import refuse

RULES = ("first", "last", "most frequent", "longest", "count")


class Recorder:
    """What happened since it was cleared, as one value.

    `rule` says which: the `first` or the `last` value, the `most frequent` one, the one with the `longest` time, or how
    many events there were (`count`), by the buckets of `buckets`: from how many events on a value is the report's. Of
    several it is the one that came first. If nothing happened it is None, which is a value like any other: `send` it.

    >>> used = Recorder("most frequent")
    >>> for feature in ("search", "share", "search"):
    ...     used.add(feature)
    >>> starts = Recorder("count", buckets={"none": 0, "few": 1, "many": 10})
    >>> used.value, starts.value
    ('search', 'none')

    `state` is what it has, as JSON can write it: keep it, if the app may be restarted within a period, and erase it
    with `clear` when `send` has returned.
    """

    def __init__(
        self, rule: str, *, buckets: Mapping[str, int] | None = None, state: Mapping[str, Any] | None = None
    ) -> None:
        if rule not in RULES:
            refuse("settings", f"a recorder cannot record the {rule!r}", f"write one of {', '.join(RULES)}")
        if (rule == "count") != bool(buckets):
            refuse("settings", "buckets belong to the rule 'count'", "give both, or none of them")
        if buckets and min(buckets.values()) != 0:
            refuse("settings", "no bucket begins with 0 events", "name what stands for nothing happening")
        self._rule, self._buckets = rule, dict(buckets or {})
        self._state: Any = deepcopy(state or {"weights": {}, "events": 0})

    @property
    def state(self) -> dict[str, Any]:
        return dict(deepcopy(self._state))

    def add(self, value: object = "", seconds: float = 0.0) -> None:
        """An event; `seconds` is how long it lasted, for the rule `longest`."""
        weights, name = self._state["weights"], str(value)
        self._state["events"] += 1
        if self._rule == "count" or (self._rule == "first" and weights):
            return
        if self._rule == "last":
            weights.clear()
        weights[name] = weights.get(name, 0.0) + (seconds if self._rule == "longest" else 1.0)

    @property
    def value(self) -> str | None:
        """What `send` is to be given."""
        weights, events = self._state["weights"], self._state["events"]
        if self._rule == "count":
            return max((least, name) for name, least in self._buckets.items() if least <= events)[1]
        return max(weights, key=weights.__getitem__, default=None)

    def clear(self) -> None:
        self._state = {"weights": {}, "events": 0}
