"""Surveys that together have every mechanism, solution and kind of fake."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from protocols.mechanisms import RECORDS, Use
from protocols.scheme import Scheme
from tests.helpers.surveys import of_size, scheme_with

BUDGETS: dict[Use, dict[str, Any]] = {
    "one-shot": {"eps": 1.0},
    "memo only": {"eps_inf": 2.0},
    "two rounds": {"eps_inf": 2.0, "eps_1": 0.6},
    "rs+fd": {"eps_inf": 2.0, "eps_1": 0.6, "solution": "rs+fd"},
    "rs+rfd": {"eps_inf": 2.0, "eps_1": 0.6, "solution": "rs+rfd"},
}
PRIOR = [0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.05, 0.04, 0.01]


def cases() -> Iterator[tuple[str, Scheme]]:
    """Names and compiled surveys."""
    for use, budgets in BUDGETS.items():
        for name, record in RECORDS.items():
            if record.fits(use) and not record.needs_grid:
                yield f"{use}, {name}", _pair(name, use, budgets)
    for solution in ("smp", "spl"):
        yield solution, scheme_with(of_size(3), of_size(12, "b"), eps_inf=2, eps_1=1, solution=solution)
    for guarantee in ("attribute", "published"):
        terms: dict[str, Any] = {"solution": "rs+fd", "guarantee": guarantee}
        yield f"rs+fd, {guarantee}", scheme_with(of_size(3), of_size(12, "b"), eps_inf=2, eps_1=1, **terms)
        yield f"rs+fd, {guarantee}, one-shot", scheme_with(of_size(3), of_size(12, "b"), eps=1, **terms)
    one = {"eps_inf": 2.0, "eps_1": 1.0}
    yield "capped", scheme_with(of_size(9), **one, memo_cap=2, horizon=4)
    yield "capped, loloha", scheme_with(of_size(9, mechanism="loloha", parameter=3), **one, memo_cap=2)
    yield "capped, fakes", scheme_with(of_size(9), of_size(4, "b"), **one, memo_cap=3, solution="rs+fd")
    yield "two bytes", scheme_with(of_size(300, mechanism="l-grr"), **one)
    long = {"first": 5, "last": 140_004, "step": 2}  # its values are not written out in the terms
    yield "very many values", scheme_with({"name": "a", "range": long}, eps=1)
    yield "very many values, many symbols", scheme_with({"name": "a", "range": {"last": 149_999}}, eps=4)
    yield "published calibration", scheme_with(of_size(7, mechanism="l-grr"), **one, calibration="published")
    yield "taking turns", scheme_with(of_size(4), of_size(3, "b"), eps=1, one_in=2)
    yield "taking turns, spl", scheme_with(of_size(4), of_size(3, "b"), eps=1, one_in=3, solution="spl", horizon=7)
    pair = [{"of": ["a", "b"], "share": 0.9}]
    yield "a cross", scheme_with(of_size(9), of_size(4, "b"), **one, crosses=pair, memo_cap=2)
    yield "a cross, evenly", scheme_with(of_size(3), of_size(4, "b"), eps=1, one_in=2, crosses=[{"of": ["b", "a"]}])
    yield "shares", scheme_with(of_size(9, share=0.7), of_size(4, "b"), of_size(5, "c"), **one)
    hashed = [{"of": ["b", "a"], "share": 0.85, "mechanism": "loloha", "parameter": 3}]
    yield "a cross, hashed", scheme_with(of_size(9), of_size(4, "b"), **one, crosses=hashed)
    odd = {"name": "a", "values": ["é", "ﬁ", "𝄞", "a b", "constructor", '"'], "mechanism": "grr"}
    yield "any text", scheme_with(odd, eps=1, devices=1000, minimum=10, grace="1h", presence_epsilon=0.5)


INSIDE = ["x1-3y0", "x0-4y1", "x0-1y2", "x3-5y2", "x2-6y3", "x4y4"]  # an area with a hole


def place_cases() -> Iterator[tuple[str, Scheme]]:
    """Surveys about places, in every use, alone and beside another attribute."""
    reaches = {"geo_inf": {"level": 2.2, "radius": "400m"}, "geo": {"level": 1.1, "radius": "400m"}}
    grid = {"at": [47.2, 6.0], "origin": [-1500, -1000], "cell": "500m", "columns": 7, "rows": 5}
    uses = {"one-shot": ("geo",), "memo only": ("geo_inf",), "two rounds": ("geo_inf", "geo")}
    for use, keys in uses.items():
        place = {"name": "a", "grid": grid, **{key: reaches[key] for key in keys}}
        yield f"{use}, geo-grid", scheme_with(place)
        yield f"{use}, geo-grid and another", scheme_with(place, of_size(4, "b"), **BUDGETS[use])  # type: ignore[index]
        some = {**place, "grid": {**grid, "inside": INSIDE}}
        yield f"{use}, geo-tight", scheme_with(some)
        loose = {key: {**reaches[key], "level": reaches[key]["level"] / 6} for key in keys}  # type: ignore[operator]
        yield f"{use}, geo-tight where it is the exponential mechanism", scheme_with({**some, **loose})
    wide = {"name": "a", "grid": {"crs": "EPSG:32631", "cell": "1km", "columns": 40, "rows": 30}}
    yield "many cells, geo-grid, capped", scheme_with({**wide, "geo_inf": {"level": 0.3, "radius": "1km"}}, memo_cap=2)
    yield "a grid without geo", scheme_with({"name": "a", "grid": grid, "mechanism": "grr"}, eps=1)


CHANGES = {
    "a shorter day": ("2026-03-27T00:00:00+01:00", 60, "2026-03-29T01:00:00Z", 120),  # Europe/Paris
    "a longer day": ("2026-10-23T00:00:00+02:00", 120, "2026-10-25T01:00:00Z", 60),
    "no midnight": ("2018-11-02T00:00:00-03:00", -180, "2018-11-04T03:00:00Z", -120),  # America/Sao_Paulo
    "no midnight at the start": ("2026-04-24T01:00:00+03:00", 120, "2026-04-23T22:00:00Z", 180),  # Africa/Cairo
    "midnight twice": ("2026-10-30T00:00:00-04:00", -240, "2026-11-01T05:00:00Z", -300),  # America/Havana
    "back to the day before": ("2010-11-05T00:00:00-02:30", -150, "2010-11-07T02:31:00Z", -210),  # America/St_Johns
    "half an hour": ("2026-04-03T00:00:00+11:00", 660, "2026-04-04T15:00:00Z", 630),  # Australia/Lord_Howe
    "between hours": ("2026-01-01T00:00:00+05:30", 330, None, 0),  # Asia/Kolkata
}
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
    start, before, change, after = CHANGES[name]
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
