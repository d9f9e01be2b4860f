"""The terms of a survey (docs/device-protocol.md, "Terms"), read from whoever answers and believed in nothing."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate
from typing import Any

from hearsay_device.attributes import MAX_VALUES, Attribute
from hearsay_device.draws import Table, bits_of, hashed
from hearsay_device.errors import keys, listed, need, not_terms, number, one_of, sum_to_1, text, whole
from hearsay_device.presence import presence_of
from hearsay_device.questions import Question

MAX_TERMS_BYTES = 8 << 20
MAX_CUTS = 1 << 22  # of all ordered attributes together: more would keep a device busy for minutes
MAX_QUESTIONS = 64
DAY = 86400
EVER = 1 << 62
UNITS = {"day": 1, "week": 7, "month": 31, "year": 366, "ever": EVER}
"""By their bit in the flags of a report: periods of so many days or more are never twice in the same unit."""
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": DAY, "w": 7 * DAY}
RESOLVED = "declared places questions sampled shares version"
DECLARED = (
    "attributes calibration central clock crosses devices eps eps_1 eps_inf grace guarantee id memo_cap "
    "one_in period presence_epsilon solution start time_zone visitors"
)
DECLARED_BEFORE_3 = "horizon minimum"
DECLARED_FROM_3 = "lookback new numbers publish_from rolling tables"


@lru_cache(maxsize=16)
def read_terms(data: bytes) -> Terms:
    """Terms from their bytes. Their tables are not compared yet, nor their losses computed."""
    need(len(data) <= MAX_TERMS_BYTES, f"more than {MAX_TERMS_BYTES} bytes")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), "a key twice")  # another reader may take the other one
        return dict(pairs)

    try:
        resolved = json.loads(data.decode(), object_pairs_hook=unique, parse_constant=not_terms)
        return Terms(resolved, sha256(data).hexdigest())
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, OverflowError):
        not_terms("their form")


class Terms:
    """Terms that were understood; `verify` compares their tables.

    `hash` is that of their bytes; reports have its beginning, the `fingerprint`, and apps give the `pin`.
    `units` are those that calendar visitors count, instead of gaps up to the horizon; `budgets` are declared, of one
    report and for ever, and None where they are not what a report loses between any two tuples; `sampling` says whether
    a device draws one question for life, which alone is about the truth; `hides`, whether fakes hide which one it is.
    """

    def __init__(self, resolved: Any, digest: str) -> None:
        keys(resolved, RESOLVED, "the terms")
        self.version = whole(resolved["version"], 1, 3, "another version")
        declared = resolved["declared"]
        keys(declared, f"{DECLARED} {DECLARED_BEFORE_3 if self.version < 3 else DECLARED_FROM_3}", "declared")
        self.hash = digest
        self.fingerprint = digest[:32]
        self.pin = self.fingerprint if self.version < 3 else digest
        self.id = text(declared["id"], "[a-z0-9][a-z0-9._-]{0,127}", "id")
        self.solution = one_of(declared.get("solution", "smp"), ("smp", "spl", "rs+fd", "rs+rfd"), "solution")
        self.hides = self.solution.startswith("rs")
        self._ask(resolved, declared)
        self.sampling = self.solution != "spl" and len(self.attributes) > 1
        self._require_version(declared)
        self.longitudinal, budgets = self._budgets(declared)
        guarantee = one_of(declared.get("guarantee", "tuple"), ("tuple", "attribute", "published"), "guarantee")
        need(self.hides or guarantee == "tuple", "guarantee")
        self.budgets = budgets if guarantee == "tuple" else None
        self.one_in = whole(declared.get("one_in", 1), 1, 10_000, "one_in")
        need(self.one_in == 1 or not self.longitudinal, "one_in")
        self.memo_cap = whole(declared["memo_cap"], 1, MAX_VALUES, "memo_cap") if "memo_cap" in declared else None
        need(self.longitudinal or self.memo_cap is None, "memo_cap")
        unfit = ("fresh",) if self.longitudinal else ("hashed", "buckets")
        need(all(question.kind not in unfit for question in self.questions), "encoding")
        self.calendar = Calendar(declared)
        self.grace = _seconds(declared.get("grace", "0s"))
        horizon = "horizon" if self.version < 3 else "lookback"
        self.horizon = whole(declared.get(horizon, 1), 1, 65535, horizon)
        self.units = None
        if "visitors" in declared:
            keys(declared["visitors"], "units", "visitors")
            self.units = listed(declared["visitors"]["units"], len(UNITS), "visitors")
            known = [unit for unit in UNITS if self.calendar.period < UNITS[unit] * DAY and unit in self.units]
            need(len(known) == len(self.units) and horizon not in declared, "visitors")
        self.presence = presence_of(declared, self.version)
        self.devices = whole(declared["devices"], 1, 10**10, "devices") if "devices" in declared else None
        self._digests = resolved["sampled"], resolved.get("places")

    def _ask(self, resolved: Any, declared: Any) -> None:
        """Attributes, and questions about them: one for each attribute, then one for each cross."""
        parts = listed(declared["attributes"], MAX_QUESTIONS, "attributes")
        self.attributes = [Attribute(part, self.solution, self.version) for part in parts]
        named = {attribute.name: attribute for attribute in self.attributes}
        need(len(named) == len(parts) > self.hides, "attributes")
        crosses = listed(declared["crosses"], MAX_QUESTIONS, "crosses") if "crosses" in declared else []
        need(not crosses or self.solution == "smp", "crosses")
        sources = [[attribute] for attribute in self.attributes] + [_axes(cross, named) for cross in crosses]
        parts = [*parts, *crosses]
        self.shares = resolved.get("shares")
        need((self.shares is not None) == any("share" in part for part in parts), "shares")
        shares: Sequence[float] = [1 / len(parts) if self.solution == "smp" else 1.0] * len(parts)
        if self.shares is not None:
            shares = sum_to_1(self.shares, "shares")
            need(self.solution == "smp" and len(shares) == len(parts) > 1, "shares")
            need(all(part.get("share", share) == share for part, share in zip(parts, shares)), "shares")
        asked = resolved["questions"]
        need(len(asked) == len(parts), "questions")
        self.questions = [Question(each, of, self.solution, share) for each, of, share in zip(asked, sources, shares)]
        need(len({question.name for question in self.questions}) == len(asked), "crosses")
        need(sum(q.k**2 for q in self.questions if q.ordered) <= MAX_CUTS, "too many ordered values")

    def _require_version(self, declared: Any) -> None:
        """Of a survey that was not read as version 3, the version follows from what it has."""
        if self.version == 3:
            return
        new = "visitors" in declared or any(each.other is not None or each.several > 1 for each in self.attributes)
        placed = any(attribute.placed for attribute in self.attributes)
        whole(self.version, 2 if new else 1, 2 if new or placed else 1, "another version")

    def _budgets(self, declared: Any) -> tuple[bool, tuple[float, float] | None]:
        """Whether the survey has memos, and its budgets; None where all attributes are places, which have their own."""
        given = {key: declared[key] for key in ("eps", "eps_inf", "eps_1") if key in declared}
        need(all(number(each) and 0 < each <= 20 * len(self.attributes) for each in given.values()), "budgets")
        rounds = [[rate is not None for rate in each.rates] for each in self.attributes if each.placed]
        need(bool(given) == (len(rounds) < len(self.attributes)), "budgets")
        if given:
            need(given.keys() in ({"eps"}, {"eps_inf"}, {"eps_inf", "eps_1"}), "budgets")
            rounds.append(["eps_inf" not in given or "eps_1" in given, "eps_inf" in given])
        need(all(each == rounds[0] for each in rounds), "budgets")
        need(all((question.second is not None) == all(rounds[0]) for question in self.questions), "rounds")
        ever = given.get("eps", given.get("eps_inf", 0.0))
        return rounds[0][1], (given.get("eps_1", ever), ever) if given else None

    def places(self, values: Mapping[str, Any], stays: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The place of each value, or None, of sets all places; and whose values are not listed.

        A missing position is the last one.
        """
        places: dict[str, Any] = {}
        unlisted = []
        for each in self.attributes:
            if each.several > 1:
                places[each.name], complete = each.set_of(values.get(each.name))
                unlisted += [] if complete else [each.name]
                continue
            last = stays.get(each.name)
            place = each.place(values.get(each.name), last)
            if place is None:
                unlisted.append(each.name)
            if each.grid is not None:
                place = stays[each.name] = last if place is None else place
            places[each.name] = each.places.get(each.other) if place is None else place
        return places, unlisted

    def answers_in(self, days: int) -> int:
        """The most that a device answers in so many days."""
        return -(-days * DAY // (self.calendar.period * self.one_in))

    def verify(self) -> None:
        """Every table, made here, must be the one that whoever made the terms has."""
        for question in self.questions:
            question.verify()
        sampled, places = Table([each.share for each in self.questions]), Table([1.0] * self.one_in)
        digests = sampled.digest() if self.sampling else None, places.digest() if self.one_in > 1 else None
        need(self._digests == digests, "tables of what is drawn for life")

    def id_of(self, what: str) -> str:
        """Of the `tuple` of all attributes, which fakes make one question; of what `sampled` and `turn` depend on."""
        if what == "tuple":
            return hashed(what, *sorted(each.id for each in self.questions))
        asked = sorted(f"{each.id} {bits_of(each.share) if self.shares else ''}" for each in self.questions)
        return hashed(what, *([str(self.one_in)] if what == "turn" else []), *asked)


def _axes(cross: Any, named: Mapping[str, Attribute]) -> list[Attribute]:
    keys(cross, "mechanism of parameter share", "cross")
    axes = [named[name] for name in listed(cross["of"], 2, "crosses")]
    need(
        len(axes) == 2 and axes[0] is not axes[1] and not any(axis.placed or axis.several > 1 for axis in axes),
        "crosses",
    )
    need(len(axes[0].values) * len(axes[1].values) <= MAX_VALUES, "crosses")
    return axes


def _seconds(given: Any) -> int:
    duration = text(given, r"\d{1,9}[smhdw]", "a duration")
    return int(duration[:-1]) * SECONDS[duration[-1]]


class Calendar:
    """The periods of a survey, in whole seconds since 1970."""

    def __init__(self, declared: Any) -> None:
        start = text(declared["start"], r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "start")
        self.start, self.period = int(datetime.fromisoformat(start).timestamp()), _seconds(declared["period"])
        need(0 < self.period <= 366 * DAY, "period")
        offsets, until = [(0, 0)], EVER  # since when local time is how many seconds ahead of UTC, and until when
        if "time_zone" in declared:
            keys(declared["time_zone"], "name offsets until", "time_zone")
            pairs, until = listed(declared["time_zone"]["offsets"], 500, "time_zone"), declared["time_zone"]["until"]
            offsets = [(since, whole(ahead, 1 - DAY, DAY - 1, "time_zone")) for since, ahead in pairs]
            moments = [whole(at, -(1 << 36), 1 << 36, "time_zone") for at in (*(since for since, _ in offsets), until)]
            need(all(one < other for one, other in zip(moments, moments[1:])), "time_zone")
        self._since = [-EVER, *(since for since, _ in offsets[1:])]
        self._offset = [ahead for _, ahead in offsets]
        # The latest local time that clocks have shown before the end of each stretch of one offset.
        ends = (since + ahead for since, ahead in zip(self._since[1:], self._offset))
        self._ends = [*accumulate(ends, max), EVER]
        self._even = "time_zone" not in declared or self.period % DAY != 0
        self._first_day = self._reached(self.start) // DAY * DAY
        self.last = min((1 << 32) - 2, self.of(until) - 1)
        need(self.begin(0) == self.start and self.last > 0, "time_zone")

    def begin(self, period: int) -> int:
        if self._even:
            return self.start + period * self.period
        local = self._first_day + period * self.period
        stretch = bisect_right(self._ends, local)
        return max(self._since[stretch], local - self._offset[stretch])

    def of(self, instant: int) -> int:
        """The period that an instant belongs to; negative before the start."""
        if self._even:
            return (instant - self.start) // self.period
        return (self._reached(instant) - self._first_day) // self.period

    def flags(self, period: int, before: int | None, counted: Iterable[str]) -> int:
        """One bit for each counted unit in which this is the first report; `before` is the last reported period."""
        now, then = self._units(period), [None] * 5 if before is None else self._units(before)
        return sum(1 << i for i, unit in enumerate(UNITS) if unit in counted and now[i] != then[i])

    def _units(self, period: int) -> list[object]:
        """The day, week, month, year and ever that a period belongs to, by the local day on which it begins."""
        day = self._reached(self.begin(period)) // DAY
        at = date(1970, 1, 1) + timedelta(days=day)
        return [day, (day + 3) // 7, (at.year, at.month), at.year, "ever"]

    def _reached(self, instant: int) -> int:
        """The latest local time that clocks have shown until an instant: it does not go back when clocks do."""
        stretch = bisect_right(self._since, instant) - 1
        earlier = self._ends[stretch - 1] - 1 if stretch > 0 else -EVER
        return max(instant + self._offset[stretch], earlier)
