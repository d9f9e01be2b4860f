"""Surveys that together have every mechanism, solution and kind of fake; and what devices must do and refuse.

What does not follow from the catalogue is in cases.json.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from protocols.mechanisms import RECORDS, Use
from protocols.scheme import Scheme
from tests.helpers.surveys import of_size, scheme_with, sets_of

BUDGETS: dict[Use, dict[str, Any]] = {
    "one-shot": {"eps": 1.0},
    "memo only": {"eps_inf": 2.0},
    "two rounds": {"eps_inf": 2.0, "eps_1": 0.6},
    "rs+fd": {"eps_inf": 2.0, "eps_1": 0.6, "solution": "rs+fd"},
    "rs+rfd": {"eps_inf": 2.0, "eps_1": 0.6, "solution": "rs+rfd"},
}
DATA = json.loads((Path(__file__).parent / "cases.json").read_text())
PRIOR = [0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.05, 0.04, 0.01]


@cache
def cases() -> list[tuple[str, Scheme]]:
    """Names and compiled surveys, compiled once in a process."""
    uses = product(BUDGETS.items(), RECORDS.values())
    fitting = [(use, each, budgets) for (use, budgets), each in uses if each.fits(use) and not each.needs_grid]
    return [
        *((f"{use}, {each.name}", _pair(each.name, use, budgets)) for use, each, budgets in fitting),
        *_listed("cases"),
    ]


@cache
def place_cases() -> list[tuple[str, Scheme]]:
    """Surveys about places, in every use, alone and beside another attribute."""
    return _listed("places")


def _listed(kind: str) -> list[tuple[str, Scheme]]:
    return [(name, _compiled(**terms)) for name, terms in DATA[kind].items()]


def _compiled(attributes: list[dict[str, Any]], **terms: Any) -> Scheme:
    return scheme_with(*attributes, **terms)


def set_cases() -> Iterator[tuple[str, Scheme]]:
    """Surveys about sets: with fresh noise and memos, bits and symbols, turns, caps, `other`, and other questions."""
    one = {"eps_inf": 2.0, "eps_1": 1.0}
    several = sets_of(30, 4)
    for name, budgets in (("one-shot", {"eps": 1.0}), ("memo only", {"eps_inf": 2.0}), ("two rounds", one)):
        for mechanism in ("grr", "oue") if name != "two rounds" else ("l-grr", "l-osue"):
            yield f"sets, {name}, {mechanism}", scheme_with({**several, "mechanism": mechanism}, **budgets)
    yield "sets, taking turns", scheme_with(several, eps=2, one_in=2)
    yield "sets, capped, with other", scheme_with({**several, "other": "v7"}, **one, memo_cap=2, horizon=4)
    yield "sets, beside others", scheme_with(several, of_size(3, "b"), **one)


CHANGES = DATA["clock changes"]
"""A start, minutes ahead of UTC, when clocks change, minutes after that. Vectors must not follow a machine's time-zone
database, so these are written out."""


def local_cases() -> Iterator[tuple[str, Scheme]]:
    """Surveys on whose third day clocks change, and weeks and hours of a time zone."""
    for name in CHANGES:
        yield f"local days, {name}", scheme_with(of_size(5), eps=1, **_local(name))
    days = _local("a shorter day")
    yield "local weeks", scheme_with(of_size(5), **{**days, "eps": 1, "period": "1w", "horizon": 3})
    yield "hours of a time zone", scheme_with(of_size(5), **{**days, "eps": 1, "period": "1h", "horizon": 3})


def _local(name: str) -> dict[str, Any]:
    start, before, change, after, _ = CHANGES[name]
    begin = int(datetime.fromisoformat(start).timestamp())
    offsets = [(begin - 86400, 60 * before)]
    if change is not None:
        offsets.append((int(datetime.fromisoformat(change).timestamp()), 60 * after))
    return {"start": start, "time_zone": {"name": "Test/Zone", "offsets": offsets, "until": begin + 100 * 86400}}


def _pair(mechanism: str, use: Use, budgets: dict[str, Any]) -> Scheme:
    more: dict[str, Any] = {"prior": PRIOR} if use == "rs+rfd" else {}
    if mechanism == "dbitflip":
        more = {"parameter": 3}
    sizes = {"a": 9, "b": 9 if use == "rs+rfd" else 17}
    return scheme_with(*(of_size(k, name, mechanism=mechanism, **more) for name, k in sizes.items()), **budgets)


def table_cases() -> Iterator[tuple[str, Scheme]]:
    """All of them."""
    yield from cases()
    yield from local_cases()
    yield from place_cases()
    yield from set_cases()


def zone_year() -> Iterator[tuple[str, Scheme]]:
    """A year in Paris, by days and by hours; its clocks change on 29 March and 25 October."""
    start = "2026-01-01T00:00:00+01:00"
    begin = int(datetime.fromisoformat(start).timestamp())
    offsets = [(begin - 86400, 3600), (1774746000, 7200), (1792890000, 3600)]
    zone = {"name": "Europe/Paris", "offsets": offsets, "until": begin + 400 * 86400}
    for period in ("1d", "1h"):
        yield period, scheme_with(of_size(3), eps=1, start=start, time_zone=zone, period=period)


def scenarios() -> Iterator[dict[str, Any]]:
    """What a device of a person allows, in order: joins, refusals; under the default limits if there are none."""
    noon = datetime(2026, 1, 1, 12)
    for scenario in DATA["scenarios"]:
        steps = [
            {"now": (noon + timedelta(days=day)).isoformat() + "+00:00", "do": what, **more}
            for day, what, more in scenario["steps"]
        ]
        yield {
            **scenario,
            "schemes": [_compiled(**DATA["surveys"][name]) for name in scenario["schemes"]],
            "steps": steps,
        }


def hostile() -> dict[str, Any]:
    """Good terms; where they are changed and to what, and the code of the refusal; null: they may be joined."""
    terms = {name: _compiled(**terms).terms.decode() for name, terms in DATA["hostile"]["terms"].items()}
    return {"terms": terms, "changes": DATA["hostile"]["changes"]}
