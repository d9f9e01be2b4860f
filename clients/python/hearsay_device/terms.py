"""The terms of a survey (docs/device-protocol.md, "Terms"), read from whoever answers and believed in nothing."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any

from hearsay_device.attributes import MAX_VALUES, Attribute
from hearsay_device.calendar import DAY, UNITS, Calendar
from hearsay_device.draws import Table, bits_of, hashed, uniform
from hearsay_device.errors import keys, listed, need, not_terms, number, one_of, refuse, sum_to_1, text, whole
from hearsay_device.questions import Question

MAX_TERMS_BYTES = 8 << 20
MAX_CUTS = 1 << 22  # of all ordered attributes together: more would keep a device busy for minutes
MAX_QUESTIONS = 64
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": DAY, "w": 7 * DAY}
RESOLVED = "declared places questions sampled shares version"
DECLARED = (
    "attributes calibration clock crosses devices eps eps_1 eps_inf grace guarantee horizon id memo_cap minimum one_in "
    "period presence_epsilon solution start time_zone visitors"
)


@lru_cache(maxsize=16)
def read_terms(data: bytes) -> Terms:
    """Terms from their bytes. Their tables are not compared yet, nor their losses computed."""
    need(len(data) <= MAX_TERMS_BYTES, f"more than {MAX_TERMS_BYTES} bytes")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), "a key twice")  # another reader may take the other one
        return dict(pairs)

    try:
        resolved = json.loads(data.decode(), object_pairs_hook=unique, parse_constant=not_terms)
        return Terms(resolved, sha256(data).hexdigest()[:32])
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, OverflowError):
        not_terms("their form")


class Terms:
    """Terms that were understood. Whether their tables are what they say, `verify` looks at.

    `units` are those that calendar visitors count, instead of gaps up to the horizon; `budgets` are declared, of one
    report and for ever, and None where they are not what a report loses between any two tuples; `sampling` says whether
    a device draws one question for life, which alone is about the truth; `hides`, whether fakes hide which one it is.
    """

    def __init__(self, resolved: Any, fingerprint: str) -> None:
        keys(resolved, RESOLVED, "the terms")
        declared = resolved["declared"]
        keys(declared, DECLARED, "declared")
        self.fingerprint = fingerprint
        self.id = text(declared["id"], "[a-z0-9][a-z0-9._-]{0,127}", "id")
        self.solution = one_of(declared.get("solution", "smp"), ("smp", "spl", "rs+fd", "rs+rfd"), "solution")
        self.hides = self.solution.startswith("rs")
        self._ask(resolved, declared)
        self.sampling = self.solution != "spl" and len(self.attributes) > 1
        new = "visitors" in declared or any(attribute.other is not None for attribute in self.attributes)
        need(type(resolved["version"]) is int and resolved["version"] == 1 + new, "another version")
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
        self.calendar = _calendar(declared)
        self.grace = _seconds(declared.get("grace", "0s"))
        self.horizon = whole(declared.get("horizon", 1), 1, 65535, "horizon")
        self.units = None
        if "visitors" in declared:
            keys(declared["visitors"], "units", "visitors")
            self.units = listed(declared["visitors"]["units"], len(UNITS), "visitors")
            known = [unit for unit in UNITS if self.calendar.period < UNITS[unit] * DAY and unit in self.units]
            need(len(known) == len(self.units) and "horizon" not in declared, "visitors")
        self.devices = whole(declared["devices"], 1, 10**10, "devices") if "devices" in declared else None
        self._digests = resolved["sampled"], resolved.get("places")

    def _ask(self, resolved: Any, declared: Any) -> None:
        """Attributes, and questions about them: one for each attribute, then one for each cross."""
        parts = listed(declared["attributes"], MAX_QUESTIONS, "attributes")
        self.attributes = [Attribute(part, self.solution) for part in parts]
        named = {attribute.name: attribute for attribute in self.attributes}
        need(len(named) == len(parts) > self.hides, "attributes")
        crosses = listed(declared["crosses"], MAX_QUESTIONS, "crosses") if "crosses" in declared else []
        need(not crosses or self.solution == "smp", "crosses")
        sources = [[attribute] for attribute in self.attributes] + [_axes(cross, named) for cross in crosses]
        parts = [*parts, *crosses]
        self.shares = resolved.get("shares")
        need((self.shares is not None) == any("share" in part for part in parts), "shares")
        shares = [1 / len(parts)] * len(parts) if self.shares is None else sum_to_1(self.shares, "shares")
        if self.shares is not None:
            need(self.solution == "smp" and len(shares) == len(parts) > 1, "shares")
            need(all(part.get("share", share) == share for part, share in zip(parts, shares)), "shares")
        asked = listed(resolved["questions"], 2 * MAX_QUESTIONS, "questions")
        need(len(asked) == len(parts), "questions")
        self.questions = [Question(each, of, self.solution, share) for each, of, share in zip(asked, sources, shares)]
        need(len({question.name for question in self.questions}) == len(asked), "crosses")
        need(sum(q.k**2 for q in self.questions if q.ordered) <= MAX_CUTS, "too many ordered values")

    def _budgets(self, declared: Any) -> tuple[bool, tuple[float, float] | None]:
        """Whether the survey has memos, and its budgets; None where all attributes are places, which have their own."""
        given = {key: declared[key] for key in ("eps", "eps_inf", "eps_1") if key in declared}
        most = 20 * len(self.attributes)
        need(all(number(budget) and 0 < budget <= most for budget in given.values()), "budgets")
        rounds = [[rate is not None for rate in each.rates] for each in self.attributes if each.placed]
        need(bool(given) == (len(rounds) < len(self.attributes)), "budgets")
        if given:
            need(given.keys() in ({"eps"}, {"eps_inf"}, {"eps_inf", "eps_1"}), "budgets")
            rounds.append(["eps_inf" not in given or "eps_1" in given, "eps_inf" in given])
        need(all(each == rounds[0] for each in rounds), "budgets")
        need(all((question.second is not None) == all(rounds[0]) for question in self.questions), "rounds")
        ever = given.get("eps", given.get("eps_inf", 0.0))
        return rounds[0][1], (given.get("eps_1", ever), ever) if given else None

    def sampled(self, order: Iterable[int]) -> Table:
        """By which a device draws its question, with the questions in this order."""
        return Table([self.questions[place].share for place in order])

    def answers_in(self, days: int) -> int:
        """The most that a device answers in so many days."""
        return -(-days * DAY // (self.calendar.period * self.one_in))

    def verify(self) -> None:
        """Every table, made here, must be the one that whoever made the terms has."""
        for question in self.questions:
            question.verify()
        sampled, places = self._digests
        everything = range(len(self.questions))
        need(sampled == (self.sampled(everything).digest() if self.sampling else None), "sampled")
        need(places == (uniform(self.one_in).digest() if self.one_in > 1 else None), "places")

    def require_signature(self, author: str, signature: str | None) -> None:
        """Refuse terms that the author has not signed: Ed25519 over the fingerprint, all in base64."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            key = Ed25519PublicKey.from_public_bytes(b64decode(author, validate=True))
        except ValueError:
            refuse("settings", "`author` is no public key", "give what `hearsay survey sign` prints")
        try:
            key.verify(b64decode(signature or "", validate=True), self.fingerprint.encode())
        except (ValueError, InvalidSignature):
            refuse("signature", f"survey {self.id!r}: its terms are not signed by the author", "do not answer it")

    def id_of(self, what: str) -> str:
        """Of the whole tuple of attributes, which is the question under rs+fd and rs+rfd; of what `sampled` and `turn`
        are keyed by: the sorted questions of a survey, and their shares.
        """
        if what == "tuple":
            return hashed(what, *sorted(each.id for each in self.questions))
        asked = sorted(f"{each.id} {bits_of(each.share) if self.shares else ''}" for each in self.questions)
        return hashed(what, *([str(self.one_in)] if what == "turn" else []), *asked)


def _axes(cross: Any, named: Mapping[str, Attribute]) -> list[Attribute]:
    keys(cross, "mechanism of parameter share", "cross")
    axes = [named[name] for name in listed(cross["of"], 2, "crosses")]
    need(len(axes) == 2 and axes[0] is not axes[1] and not any(axis.placed for axis in axes), "crosses")
    need(len(axes[0].values) * len(axes[1].values) <= MAX_VALUES, "crosses")
    return axes


def _calendar(declared: Any) -> Calendar:
    start = text(declared["start"], r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "start")
    begin, period = int(datetime.fromisoformat(start).timestamp()), _seconds(declared["period"])
    need(0 < period <= 366 * DAY, "period")
    if "time_zone" not in declared:
        return Calendar(begin, period)
    zone = declared["time_zone"]
    keys(zone, "name offsets until", "time_zone")
    pairs = listed(zone["offsets"], 500, "time_zone")
    offsets = [(since, whole(ahead, 1 - DAY, DAY - 1, "time_zone")) for since, ahead in pairs]
    moments = [whole(at, -(1 << 36), 1 << 36, "time_zone") for at in (*(since for since, _ in offsets), zone["until"])]
    need(all(one < other for one, other in zip(moments, moments[1:])), "time_zone")
    made = Calendar(begin, period, offsets, zone["until"])
    need(made.begin(0) == begin and made.last > 0, "time_zone")
    return made


def _seconds(given: Any) -> int:
    duration = text(given, r"\d{1,9}[smhdw]", "a duration")
    return int(duration[:-1]) * SECONDS[duration[-1]]
