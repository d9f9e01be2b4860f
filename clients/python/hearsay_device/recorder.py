"""Many events of a period become the one value of its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearsay_device.errors import refuse

RULES = ("first", "last", "most frequent", "longest", "every", "count")


class Recorder:
    """What happened since it was cleared, as one value. If nothing happened it is None: `send` it like any other.

    `rule` says which: the `first` or the `last` value, the `most frequent` one, the one with the `longest` time, or how
    many events there were (`count`), by `buckets`: from how many events on a value is the report's. Sets: `every` one.

    >>> used = Recorder("most frequent")
    >>> for feature in ("search", "share", "search"):
    ...     used.add(feature)
    >>> starts = Recorder("count", buckets={"none": 0, "few": 1, "many": 10})
    >>> used.value, starts.value
    ('search', 'none')

    Keep `state`, as JSON, if the app may be restarted within a period, and `clear` it when `send` has returned.
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
        self._weights: dict[str, float] = {} if state is None else dict(state["weights"])
        self._events: int = 0 if state is None else state["events"]

    @property
    def state(self) -> dict[str, Any]:
        return {"weights": dict(self._weights), "events": self._events}

    def add(self, value: object = "", seconds: float = 0.0) -> None:
        """An event; `seconds` is how long it lasted, for the rule `longest`."""
        self._events += 1
        if self._rule == "count" or (self._rule == "first" and self._weights):
            return
        if self._rule == "last":
            self._weights.clear()
        more = seconds if self._rule == "longest" else 1.0
        self._weights[str(value)] = self._weights.get(str(value), 0.0) + more

    @property
    def value(self) -> str | list[str] | None:
        """What `send` is to be given."""
        if self._rule == "every":
            return list(self._weights)
        if self._rule == "count":
            return max((least, name) for name, least in self._buckets.items() if least <= self._events)[1]
        return max(self._weights, key=self._weights.__getitem__, default=None)

    def clear(self) -> None:
        self._weights, self._events = {}, 0
