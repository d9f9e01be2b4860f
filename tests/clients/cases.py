"""Surveys that together have every mechanism, solution and kind of fake; and what devices must do and refuse."""

from collections.abc import Iterator
from datetime import datetime, timedelta
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
GRID = {"at": [47.2, 6.0], "origin": [-1500, -1000], "cell": "500m", "columns": 7, "rows": 5}
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


def place_cases() -> Iterator[tuple[str, Scheme]]:
    """Surveys about places, in every use, alone and beside another attribute."""
    reaches = {"geo_inf": {"level": 2.2, "radius": "400m"}, "geo": {"level": 1.1, "radius": "400m"}}
    uses = {"one-shot": ("geo",), "memo only": ("geo_inf",), "two rounds": ("geo_inf", "geo")}
    for use, keys in uses.items():
        place = {"name": "a", "grid": GRID, **{key: reaches[key] for key in keys}}
        yield f"{use}, geo-grid", scheme_with(place)
        yield f"{use}, geo-grid and another", scheme_with(place, of_size(4, "b"), **BUDGETS[use])  # type: ignore[index]
    wide = {"name": "a", "grid": {"crs": "EPSG:32631", "cell": "1km", "columns": 40, "rows": 30}}
    yield "many cells, geo-grid, capped", scheme_with({**wide, "geo_inf": {"level": 0.3, "radius": "1km"}}, memo_cap=2)
    yield "a grid without geo", scheme_with({"name": "a", "grid": GRID, "mechanism": "grr"}, eps=1)


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


PERSON: dict[str, Any] = {"eps_inf": 3, "eps_1": 1, "memo_cap": 3}
COLOURS = {"name": "colour", "values": ["red", "green", "blue", "grey"]}
FEW = {"eps_inf": 0.5, "eps_1": 0.3}


def scenarios() -> Iterator[dict[str, Any]]:
    """What a device of a person allows, in order: joins, refusals; under the default limits if there are none."""
    ours = scheme_with(COLOURS, **PERSON, id="ours", horizon=7)
    values = [{"colour": colour} for colour in ("red", "blue", "mauve", "red", "grey")]
    yield {
        "name": "a survey of a person, pinned: charges know no value",
        "schemes": [ours],
        "steps": [
            _join(0, ours, pinned=True),
            *(step for day, each in enumerate(values) for step in (_settle(day, ours, each), _explain(day))),
        ],
    }
    calm = {"eps_inf": 1, "eps_1": 0.4, "devices": 10**6}
    theirs = scheme_with({**COLOURS, "values": ["grey", "blue", "green", "red"]}, **calm, id="theirs")
    own = scheme_with(COLOURS, **calm, id="own")
    yield {
        "name": "two surveys that ask the same have one memo, whatever the order of the list",
        "schemes": [own, theirs],
        "steps": [
            _join(0, own), _settle(0, own, values[0]), _join(0, theirs), _settle(0, theirs, values[0]), _explain(0),
            _settle(1, own, values[1]), _settle(1, theirs, values[0]), _explain(1),
        ],
    }  # fmt: skip
    renamed = scheme_with({**COLOURS, "values": ["red", "green", "blue", "gray"]}, **PERSON, id="renamed")
    yield {
        "name": "another list is another question, and meets the limit of the value",
        "schemes": [ours, renamed],
        "steps": [_join(0, ours, pinned=True), _join(0, renamed), _settle(0, renamed, values[0])],
    }
    once = scheme_with(COLOURS, eps=0.9, id="once", grace="1h")
    yield {
        "name": "answers without memos add up, and count for a year",
        "schemes": [once],
        "steps": [
            _join(0, once), *(_settle(day, once, values[0]) for day in (0, 1, 2, 3, 365, 366)), _explain(366),
            _join(366, scheme_with(COLOURS, eps=0.9, id="once", grace="1h"), pinned=True),
        ],
    }  # fmt: skip
    yield {
        "name": "pinned terms reserve a year, of which one survey gets three quarters",
        "schemes": [once, ours, scheme_with(of_size(4, "b"), **PERSON, id="more")],
        "steps": [
            _join(0, once, pinned=True), _join(0, ours, pinned=True),
            {**_join(0, ours, pinned=True), "survey": "more"}, {"now": _at(0), "do": "leave", "survey": "ours"},
            {**_join(0, ours, pinned=True), "survey": "more"}, _explain(0),
        ],
    }  # fmt: skip
    many = scheme_with(of_size(40, mechanism="l-osue"), **PERSON, id="many")
    yield {
        "name": "with a credential, bits are refused; symbols are not",
        "schemes": [many, ours],
        "steps": [{**_join(0, many), "credential": True}, _join(0, many), {**_join(0, ours), "credential": True}],
    }
    twin = scheme_with(of_size(40, mechanism="l-osue"), eps_inf=0.5, eps_1=0.3, id="twin")
    other = scheme_with(of_size(40, mechanism="l-osue"), eps_inf=0.5, eps_1=0.2, id="other")
    yield {
        "name": "surveys that ask the same are not both joined if that links reports",
        "schemes": [twin, other, own, theirs],
        "steps": [
            _join(0, twin), _join(0, other), {**_join(0, own), "credential": True},
            {**_join(0, theirs), "credential": False},
        ],
    }  # fmt: skip
    rules = [
        scheme_with(COLOURS, eps_inf=1, id="sent"),
        scheme_with(COLOURS, eps_inf=1, eps_1=0.9, id="ratio"),
        scheme_with(COLOURS, **FEW, id="short", period="30m"),
        scheme_with(COLOURS, **FEW, id="long", horizon=32),
        scheme_with(COLOURS, eps_inf=3, eps_1=1.5, id="report"),
        scheme_with(COLOURS, eps_inf=3.5, eps_1=1, memo_cap=1, id="value"),
        scheme_with(COLOURS, eps_inf=2.5, eps_1=1, id="year"),
    ]
    yield {
        "name": "rules and limits of a person's device",
        "schemes": rules,
        "steps": [_join(0, each, pinned=True) for each in rules],
    }
    yield from _unlisted()
    counted = scheme_with(COLOURS, **FEW, id="counted", visitors={"units": ["week", "month", "ever"]})
    days = (0, 1, 4, 11, 30, 31, 45)
    yield {
        "name": "calendar visitors: flags instead of gaps",
        "schemes": [counted],
        "steps": [_join(0, counted), *(_settle(day, counted, values[0]) for day in days)],
    }
    yield {
        "name": "clocks that go back, and surveys that are left",
        "schemes": [own],
        "steps": [
            _settle(0, own, values[0]), _join(-1, own), _settle(-1, own, values[0]), _settle(5, own, values[0]),
            _settle(3, own, values[0]), _settle(5, own, values[1]),
            {"now": _at(3), "do": "forget_clock", "survey": "own"}, _settle(3, own, values[0]),
            _settle(7, own, values[0]), {"now": _at(7), "do": "leave", "survey": "own"}, _settle(8, own, values[0]),
            _join(9, own), _settle(9, own, values[0]),
        ],
    }  # fmt: skip


def _unlisted() -> Iterator[dict[str, Any]]:
    drawn = scheme_with(COLOURS, {"name": "size", "range": {"first": 10, "last": 59, "step": 10}}, **FEW, id="drawn", solution="spl")  # fmt: skip  # noqa: E501
    named = scheme_with({**COLOURS, "other": "grey"}, **FEW, id="named")
    pairs = scheme_with(COLOURS, of_size(3, "b"), **FEW, id="pairs", crosses=[{"of": ["colour", "b"], "share": 0.99}])
    grid = {"name": "place", "grid": GRID, "geo_inf": {"level": 0.8, "radius": "1km"}, "geo": {"level": 0.2, "radius": "1km"}}  # fmt: skip  # noqa: E501
    places = scheme_with(grid, id="places")
    given: list[dict[str, Any]] = [
        {}, {"colour": "mauve", "size": 9}, {"colour": None, "size": 60}, {"colour": 7, "size": 34.5},
        {"colour": True, "size": "31"}, {"colour": ["red"], "size": "30-39"}, {"colour": "red", "size": "a lot"},
        {"colour": "Red", "size": -1e300},
    ]  # fmt: skip
    for scheme in (drawn, named, pairs):
        steps = [_settle(day, scheme, each) for day, each in enumerate(given)]
        yield {
            "name": f"values that are not listed: {scheme.survey.id}",
            "schemes": [scheme],
            "steps": [_join(0, scheme), *steps],
        }
    positions = [{}, {"x": 0, "y": 0}, {"x": 600, "y": 0}, {"x": 630, "y": 0}, {"latitude": 47.21, "longitude": 6.01}, {"x": 9e9, "y": -9e9}, {"x": 9e9, "y": -480}, {"y": 1}, "x1y1", "nowhere"]  # fmt: skip  # noqa: E501
    yield {
        "name": "positions that are missing, outside, and near the last cell",
        "schemes": [places],
        "steps": [
            _join(0, places),
            *(_settle(day, places, {"place": each} if each else {}) for day, each in enumerate(positions)),
        ],
        "limits": {"report": 1e6, "value": 1e6, "year": 1e7},
    }


def _at(day: int) -> str:
    return (datetime(2026, 1, 1, 12) + timedelta(days=day)).isoformat() + "+00:00"


def _join(day: int, scheme: Scheme, pinned: bool = False) -> dict[str, Any]:
    return {"now": _at(day), "do": "join", "survey": scheme.survey.id, **({"pinned": True} if pinned else {})}


def _settle(day: int, scheme: Scheme, values: dict[str, Any]) -> dict[str, Any]:
    return {"now": _at(day), "do": "settle", "survey": scheme.survey.id, "values": values}


def _explain(day: int) -> dict[str, Any]:
    return {"now": _at(day), "do": "explain"}


def hostile_terms() -> dict[str, str]:
    """Good terms, which are changed below."""
    schemes = {
        "symbols": scheme_with(of_size(9, mechanism="l-grr"), of_size(5, "b"), **FEW),
        "bits": scheme_with(of_size(9, mechanism="l-osue"), eps_inf=2, eps_1=0.6),
        "ordered": scheme_with(of_size(4, mechanism="l-geometric"), eps_inf=0.4, eps_1=0.2),
        "fakes": scheme_with(of_size(4), of_size(3, "b"), **FEW, solution="rs+fd"),
        "zone": scheme_with(of_size(3), eps=1, **_local("a shorter day")),
        "place": scheme_with({"name": "a", "grid": GRID, "geo": {"level": 0.4, "radius": "2km"}}),
        "sets": scheme_with(sets_of(12, 3, mechanism="l-grr"), **FEW),
    }
    return {name: scheme.terms.decode() for name, scheme in schemes.items()}


def hostile_changes() -> Iterator[dict[str, Any]]:
    """Which terms are changed, where and to what, and the code of the refusal; null: they may be joined."""
    first = ["questions", 0, "first"]
    changes: list[tuple[str, str, list[Any], Any, str | None]] = [
        ("the truth", "symbols", first, {"p": 1.0, "q": 0.0}, "terms"),
        ("nearly the truth", "symbols", first, {"p": 0.9999992, "q": 1e-7}, "losses"),
        ("round 2 nearly keeps the memo", "symbols", ["questions", 0, "second"], {"p": 0.9999992, "q": 1e-7}, "losses"),
        ("no round 2", "symbols", ["questions", 0, "second"], None, "terms"),
        ("a smaller budget", "symbols", ["declared", "eps_inf"], 0.4, "losses"),
        ("a larger budget, with tables that are not its own", "symbols", ["declared", "eps_inf"], 0.6, None),
        ("other tables", "symbols", ["questions", 0, "tables", "first", 0], "0" * 64, "terms"),
        ("probabilities that do not sum to 1", "symbols", [*first, "q"], 0.001, "terms"),
        ("probabilities that are text", "symbols", [*first, "p"], "0.5", "terms"),
        ("truth as probability", "symbols", [*first, "p"], True, "terms"),
        ("a key that is not known", "symbols", ["declared", "exactly"], True, "terms"),
        ("a key that is not known, in an attribute", "symbols", ["declared", "attributes", 0, "exactly"], 1, "terms"),
        ("a key that is not known, in a round", "symbols", [*first, "r"], 0.1, "terms"),
        ("another version", "symbols", ["version"], 3, "terms"),
        ("version 2 without its keys", "symbols", ["version"], 2, "terms"),
        ("version 1 with its keys", "symbols", ["declared", "attributes", 0, "other"], "3", "terms"),
        ("no questions", "symbols", ["questions"], [], "terms"),
        ("a question too few", "symbols", ["questions", 1], ..., "terms"),
        ("nothing declared", "symbols", ["declared"], ..., "terms"),
        ("a value that is no text", "symbols", ["declared", "attributes", 0, "values", 1], 1, "terms"),
        ("a value without bytes", "symbols", ["declared", "attributes", 0, "values", 1], "\ud800", "terms"),
        ("a value twice", "symbols", ["declared", "attributes", 0, "values", 1], "0", "terms"),
        ("a name twice", "symbols", ["declared", "attributes", 1, "name"], "a", "terms"),
        ("shares that are not declared", "symbols", ["shares"], [0.5, 0.5], "terms"),
        ("another table of the sampled question", "symbols", ["sampled"], None, "terms"),
        ("a period of nothing", "symbols", ["declared", "period"], "0d", "terms"),
        ("a start in another time zone", "symbols", ["declared", "start"], "2026-01-01T00:00:00+01:00", "terms"),
        ("a budget that is no number", "symbols", ["declared", "eps_1"], "1", "terms"),
        ("an area inside a grid", "place", ["declared", "attributes", 0, "grid", "inside"], ["x0-6y0"], "terms"),
        ("places of version 1, which were given more", "place", ["version"], 1, None),
        ("cells that tell more", "place", ["questions", 0, "first", "rate"], 0.5, "losses"),
        ("tiny cells", "place", ["declared", "attributes", 0, "grid", "cell"], 1e-300, "losses"),
        ("another grid", "place", ["declared", "attributes", 0, "grid", "columns"], 8, "terms"),
        ("bits that are kept", "bits", first, {"p": 0.99, "q": 0.01}, "losses"),
        ("bits with q above p", "bits", first, {"p": 0.2, "q": 0.3}, "terms"),
        ("a mechanism of another encoding", "bits", ["questions", 0, "encoding"], {"kind": "direct"}, "terms"),
        ("a hash without its parameter", "bits", ["questions", 0, "encoding"], {"kind": "hashed"}, "terms"),
        ("ordered values that are kept", "ordered", [*first, "ends"], [0.99, 0.001, 0.0001, 0.00001], "losses"),
        ("ordered values with too few numbers", "ordered", [*first, "inside"], [], "terms"),
        ("fakes that are none", "fakes", ["questions", 0, "fakes"], None, "terms"),
        ("fakes of another kind", "fakes", ["questions", 0, "fakes"], "zero", "terms"),
        ("a guarantee that is not known", "fakes", ["declared", "guarantee"], "none", "terms"),
        ("offsets that do not ascend", "zone", ["declared", "time_zone", "offsets", 1, 0], 0, "terms"),
        ("an offset of a day", "zone", ["declared", "time_zone", "offsets", 1, 1], 86400, "terms"),
        ("sets of one value", "sets", ["declared", "attributes", 0, "several"], 1, "terms"),
        ("sets of all values", "sets", ["declared", "attributes", 0, "several"], 12, "terms"),
        ("larger sets than were drawn from", "sets", ["declared", "attributes", 0, "several"], 4, "terms"),
        ("a smaller budget of sets", "sets", ["declared", "eps_1"], 0.29, "losses"),
        ("sets in version 1", "sets", ["version"], 1, "terms"),
        ("visitors in version 1", "symbols", ["declared", "visitors"], {"units": ["ever"]}, "terms"),
    ]
    for name, terms, path, value, code in changes:
        change = {"delete": True} if value is ... else {"value": value}
        yield {"name": name, "terms": terms, "path": path, **change, "refused": code}
