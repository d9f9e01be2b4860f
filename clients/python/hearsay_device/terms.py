"""The terms of a survey (docs/device-protocol.md, "Terms"), read from whoever answers and believed in nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from math import isfinite
from typing import Any, NoReturn

from hearsay_device.calendar import DAY, SHORTER, UNITS, Calendar
from hearsay_device.encodings import (
    Buckets,
    Direct,
    Fakes,
    Flip,
    Fresh,
    Hashed,
    Matrix,
    Move,
    Round,
    Unary,
    fresh_digits,
    most_digits,
)  # fmt: skip
from hearsay_device.errors import DeviceError, refuse
from hearsay_device.places import LEAST_RATE, MOST_RATE, Grid
from hearsay_device.tables import Table, uniform

MAX_TERMS_BYTES = 8 << 20
MAX_VALUES = 1 << 16
MOST_VALUES, MOST_HASHES = 1_000_000, 1 << 23  # of answers with fresh hashes
HASH_PRIMES = (2, 3, 5, 7, 11, 13)
FRESH_PRIMES = (*HASH_PRIMES, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
MAX_ORDERED, MAX_ORDERED_TWICE = 1024, 256
MAX_CUTS = 1 << 22  # of all ordered attributes together: more would keep a device busy for minutes
MAX_QUESTIONS = 64
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": DAY, "w": 7 * DAY}
# A key that is not listed might change what an answer means: such terms are refused.
RESOLVED = "declared places questions sampled shares version"
DECLARED = (
    "attributes calibration clock crosses devices eps eps_1 eps_inf grace guarantee horizon id memo_cap minimum one_in "
    "period presence_epsilon solution start time_zone visitors"
)
ATTRIBUTE = "geo geo_inf grid mechanism name other parameter prior range share values"
PARTS = ("traits", "first", "second")


@dataclass(frozen=True, eq=False)
class Attribute:
    """What the app gives a value of, and what stands for a value that is not listed."""

    name: str
    values: tuple[str, ...]
    other: str | None
    span: tuple[int, int, int] | None
    """First, last and step of a range of numbers."""
    grid: Grid | None
    rates: tuple[float | None, float | None]
    """Declared: what one cell side may cost, in one report and for ever."""
    prior: tuple[float, ...] | None

    @property
    def placed(self) -> bool:
        return self.rates != (None, None)

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {value: place for place, value in enumerate(self.values)}


@dataclass(frozen=True, eq=False)
class Question:
    """One attribute, or a cross of two, as it is asked."""

    name: str
    sources: tuple[Attribute, ...]
    values: tuple[str, ...]
    kind: str
    parameter: int
    """Of hashes g, of buckets d, otherwise 0."""
    first: Round
    second: Round | None
    fakes: Fakes | None
    share: float
    """The chance that a device draws it, where it draws one."""
    tables: Mapping[str, tuple[str, ...]] = field(repr=False)

    @property
    def k(self) -> int:
        return len(self.values)

    @property
    def bits(self) -> bool:
        return self.kind in ("unary", "buckets")

    @property
    def size(self) -> int:
        """Of a memo: how many symbols there are, or bits."""
        return self.parameter or self.k

    @property
    def states(self) -> int:
        """How many memos a device can ever have."""
        return min(self.k, self.parameter + (self.kind == "buckets")) if self.parameter else self.k

    @cached_property
    def encoding(self) -> Any:
        if self.kind == "hashed":
            return Hashed(self.k, self.parameter, self.first, self.second)
        if self.kind == "fresh":
            return Fresh(self.k, self.parameter, self.first)
        if self.kind in ("direct", "plane"):
            return Direct(self.k, self.first, self.second, self.fakes, self.sources[0].grid)
        assert isinstance(self.first, Flip) and isinstance(self.second, (Flip, type(None)))
        if self.kind == "buckets":
            return Buckets(self.k, self.parameter, self.first, self.second)
        return Unary(self.k, self.first, self.second, self.fakes)


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms that were understood. Whether their tables are what they say, `verify` looks at."""

    id: str
    fingerprint: str
    calendar: Calendar = field(repr=False)
    grace: int
    horizon: int
    units: tuple[str, ...] | None
    """With calendar visitors: the units that are counted, instead of gaps up to the horizon."""
    memo_cap: int | None
    one_in: int
    solution: str
    budgets: tuple[float, float] | None
    """Declared: of one report, and for ever; None where they are not what a report loses between any two tuples."""
    longitudinal: bool
    devices: int | None
    attributes: tuple[Attribute, ...]
    questions: tuple[Question, ...]
    shares: tuple[float, ...] | None
    digests: tuple[Any, Any] = field(repr=False)

    @property
    def sampling(self) -> bool:
        """Whether a device draws one question for life, which alone is about the truth."""
        return self.solution != "spl" and len(self.attributes) > 1

    @property
    def hides(self) -> bool:
        return self.solution.startswith("rs")

    def sampled(self, order: Iterable[int]) -> Table:
        """By which a device draws its question, with the questions in this order."""
        return Table([self.shares[place] if self.shares else 1.0 for place in order])

    def verify(self) -> None:
        """Every table, made here, must be the one that whoever made the terms has."""
        for question in self.questions:
            for part in PARTS:
                _need(question.tables[part] == question.encoding.digests[part], f"tables of {part}")
        sampled, places = self.digests
        everything = range(len(self.questions))
        _need(sampled == (self.sampled(everything).digest if self.sampling else None), "sampled")
        _need(places == (uniform(self.one_in).digest if self.one_in > 1 else None), "places")


@lru_cache(maxsize=16)
def read_terms(data: bytes) -> Terms:
    """Terms from their bytes. Their tables are not compared yet, nor their losses computed."""
    _need(len(data) <= MAX_TERMS_BYTES, f"more than {MAX_TERMS_BYTES} bytes")
    try:
        resolved = json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_not_terms)
        return _understood(resolved, sha256(data).hexdigest()[:32])
    except DeviceError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, OverflowError):
        _not_terms("their form")


def _understood(resolved: Any, fingerprint: str) -> Terms:
    _keys(resolved, RESOLVED, "the terms")
    declared = resolved["declared"]
    _keys(declared, DECLARED, "declared")
    solution = _one_of(declared.get("solution", "smp"), ("smp", "spl", "rs+fd", "rs+rfd"), "solution")
    hides = solution.startswith("rs")
    parts = _list(declared["attributes"], MAX_QUESTIONS, "attributes")
    attributes = tuple(_attribute(part, solution) for part in parts)
    _need(len({attribute.name for attribute in attributes}) == len(parts) > hides, "attributes")
    crosses = _list(declared["crosses"], MAX_QUESTIONS, "crosses") if "crosses" in declared else []
    _need(not crosses or solution == "smp", "crosses")
    sources = [(attribute,) for attribute in attributes] + [_crossed(cross, attributes) for cross in crosses]
    _need(len({tuple(map(id, each)) for each in sources}) == len(sources), "crosses")
    shares = _shares([*parts, *crosses], resolved.get("shares"), solution)
    asked = _list(resolved["questions"], 2 * MAX_QUESTIONS, "questions")
    _need(len(asked) == len(sources), "questions")
    questions = tuple(
        _question(each, of, solution, shares[i] if shares else 1 / len(sources))
        for i, (each, of) in enumerate(zip(asked, sources))
    )
    _need(sum(q.k**2 for q in questions if isinstance(q.first, Matrix)) <= MAX_CUTS, "too many ordered values")
    new = "visitors" in declared or any(attribute.other is not None for attribute in attributes)
    _need(type(resolved["version"]) is int and resolved["version"] == 1 + new, "another version")
    longitudinal, budgets = _budgets(declared, attributes, questions)
    guarantee = _one_of(declared.get("guarantee", "tuple"), ("tuple", "attribute", "published"), "guarantee")
    _need(hides or guarantee == "tuple", "guarantee")
    calendar = _calendar(declared)
    one_in = _whole(declared.get("one_in", 1), 1, 10_000, "one_in")
    _need(one_in == 1 or not longitudinal, "one_in")
    _need(longitudinal or "memo_cap" not in declared, "memo_cap")
    _need(all(q.kind not in (("fresh",) if longitudinal else ("hashed", "buckets")) for q in questions), "encoding")
    _need("visitors" not in declared or "horizon" not in declared, "visitors")
    return Terms(
        id=_matching(r"[a-z0-9][a-z0-9._-]{0,127}", declared["id"], "id")[0],
        fingerprint=fingerprint,
        calendar=calendar,
        grace=_seconds(declared.get("grace", "0s")),
        horizon=_whole(declared.get("horizon", 1), 1, 65535, "horizon"),
        units=_units(declared["visitors"], calendar) if "visitors" in declared else None,
        memo_cap=_whole(declared["memo_cap"], 1, MAX_VALUES, "memo_cap") if "memo_cap" in declared else None,
        one_in=one_in,
        solution=solution,
        budgets=budgets if guarantee == "tuple" else None,
        longitudinal=longitudinal,
        devices=_whole(declared["devices"], 1, 10**10, "devices") if "devices" in declared else None,
        attributes=attributes,
        questions=questions,
        shares=shares,
        digests=(resolved["sampled"], resolved.get("places")),
    )


def _attribute(given: Any, solution: str) -> Attribute:
    _keys(given, ATTRIBUTE, "attribute")
    span = _span(given["range"]) if "range" in given else None
    grid = _grid(given["grid"]) if "grid" in given else None
    if grid is not None:
        _need("values" not in given and span is None, "values")
        values = [f"x{column}y{row}" for row in range(grid.rows) for column in range(grid.columns)]
    elif span is not None and "values" not in given:
        first, last, step = span
        _need(MAX_VALUES < (last - first) // step + 1 <= MOST_VALUES, "range")
        starts = range(first, last + 1, step)
        values = [str(s) if step == 1 else f"{s}-{min(s + step - 1, last)}" for s in starts]
    else:
        values = [_text(value) for value in _list(given["values"], MAX_VALUES, "values")]
        _need(span is None or len(values) == (span[1] - span[0]) // span[2] + 1, "range")
    _need(len(values) >= 2 and len(set(values)) == len(values), "values")
    _need("other" not in given or given["other"] in values, "other")
    rates = tuple(_rate(given[key], grid) if key in given else None for key in ("geo", "geo_inf"))
    _need(rates == (None, None) or solution == "smp", "geo")
    _need(("prior" in given) == (solution == "rs+rfd"), "prior")
    prior = None
    if "prior" in given:
        _need(given["prior"].keys() == set(values), "prior")
        prior = _sum_to_1([given["prior"][value] for value in values], "prior")
    name = _matching(r"[a-z][a-z0-9_]{0,62}", given["name"], "name")[0]
    return Attribute(name, tuple(values), given.get("other"), span, grid, (rates[0], rates[1]), prior)


def _span(given: Any) -> tuple[int, int, int]:
    _keys(given, "first last step", "range")
    first = _whole(given.get("first", 0), -(1 << 53), 1 << 53, "range")
    return first, _whole(given["last"], first, 1 << 53, "range"), _whole(given.get("step", 1), 1, 1 << 53, "range")


def _grid(given: Any) -> Grid:
    _keys(given, "at cell columns crs origin rows", "grid")
    columns, rows = (_whole(given[key], 2, MAX_VALUES // 2, key) for key in ("columns", "rows"))
    _need(columns * rows <= MAX_VALUES and _number(given["cell"]) and given["cell"] > 0, "grid")
    at, origin = (tuple(given[key]) if key in given else None for key in ("at", "origin"))
    _need(all(pair is None or (len(pair) == 2 and all(map(_number, pair))) for pair in (at, origin)), "grid")
    return Grid(columns, rows, given["cell"], origin or (0.0, 0.0), at, _text(given.get("crs", "local")))


def _rate(given: Any, grid: Grid | None) -> float:
    """What one cell side may cost."""
    _keys(given, "level radius", "geo")
    _need(all(_number(given[key]) and given[key] > 0 for key in ("level", "radius")), "geo")
    if grid is None:
        _not_terms("geo")
    return float(given["level"] * grid.cell / given["radius"])


def _crossed(cross: Any, attributes: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    _keys(cross, "mechanism of parameter share", "cross")
    found = tuple(next((each for each in attributes if each.name == name), None) for name in cross["of"])
    axes = tuple(axis for axis in found if axis is not None and not axis.placed)
    _need(len(found) == len(axes) == 2 and axes[0] is not axes[1], "crosses")
    _need(len(axes[0].values) * len(axes[1].values) <= MAX_VALUES, "crosses")
    return axes


def _question(given: Any, sources: tuple[Attribute, ...], solution: str, share: float) -> Question:
    _keys(given, "encoding fakes first mechanism second tables", "question")
    values = sources[0].values
    if len(sources) == 2:
        values = tuple(f"{one}*{other}" for one in values for other in sources[1].values)
        _need(len(set(values)) == len(values), "crosses")
    kind, parameter = _encoding(given["encoding"], len(values), sources[0].grid)
    _need((kind == "plane") == sources[0].placed, "geo")
    _need(kind == "fresh" or len(values) <= MAX_VALUES, "values")
    ordered = kind == "direct" and "ends" in given["first"]
    symbols = 0 if kind in ("unary", "buckets") else parameter or len(values)
    read = _moved if kind == "plane" else _matrix if ordered else _flip
    first, second = (
        None if numbers is None else read(numbers, symbols) for numbers in (given["first"], given["second"])
    )
    if first is None:
        _not_terms("rounds")
    _need(not ordered or second is None or len(values) <= MAX_ORDERED_TWICE, "values")
    _keys(given["tables"], " ".join(PARTS), "tables")
    tables = {part: tuple(given["tables"][part]) for part in PARTS}
    fakes = None
    if solution.startswith("rs"):
        _need(kind in ("direct", "unary") and not ordered, "fakes")
        kinds = ("bare", "noisy") if kind == "direct" else ("zero", "noisy") if solution == "rs+fd" else ("noisy",)
        prior = sources[0].prior
        fakes = Fakes(_one_of(given["fakes"], kinds, "fakes"), prior or (1 / len(values),) * len(values), bool(prior))
    _need(fakes is not None or given["fakes"] is None, "fakes")
    name = "*".join(source.name for source in sources)
    return Question(name, sources, values, kind, parameter, first, second, fakes, share, tables)


def _encoding(given: Any, k: int, grid: Grid | None) -> tuple[str, int]:
    """Its kind and its parameter."""
    kind = _one_of(given["kind"], ("direct", "unary", "hashed", "fresh", "buckets", "plane"), "encoding")
    own = {"hashed": "g", "fresh": "g", "buckets": "d", "plane": "columns rows"}.get(kind, "")
    _need(given.keys() == {"kind", *own.split()}, "encoding")
    if kind == "plane":
        _need(grid is not None and (given["columns"], given["rows"]) == (grid.columns, grid.rows), "encoding")
    if kind == "buckets":
        return kind, _whole(given["d"], 1, k, "buckets")
    if kind not in ("hashed", "fresh"):
        return kind, 0
    g = _one_of(given["g"], HASH_PRIMES if kind == "hashed" else FRESH_PRIMES, "hash")
    if kind == "hashed":
        _need(k <= (g ** most_digits(g) - 1) // (g - 1), "hash")
    else:
        _need(k <= MOST_VALUES and g ** fresh_digits(k, g) <= MOST_HASHES, "hash")
    return kind, g


def _flip(numbers: Any, symbols: int) -> Flip:
    _keys(numbers, "p q", "probabilities")
    p, q = numbers["p"], numbers["q"]
    _need(_number(p) and _number(q) and 0 < q < p < 1, "probabilities")
    _need(symbols == 0 or abs(p + (symbols - 1) * q - 1) < 1e-9, "probabilities")
    return Flip(p, q)


def _matrix(numbers: Any, k: int) -> Matrix:
    _keys(numbers, "ends inside", "probabilities")
    ends, inside = tuple(numbers["ends"]), tuple(numbers["inside"])
    _need(k <= MAX_ORDERED and len(ends) == k and len(inside) == (k - 1 if k > 2 else 0), "values")
    _need(all(_number(each) and 0 <= each < 1 for each in (*ends, *inside)), "probabilities")
    _need(ends[0] > 0 and (k == 2 or inside[0] > 0), "probabilities")
    return Matrix(ends, inside)


def _moved(numbers: Any, _: int) -> Move:
    _keys(numbers, "rate", "rate")
    _need(_number(numbers["rate"]) and LEAST_RATE <= numbers["rate"] <= MOST_RATE, "rate")
    return Move(numbers["rate"])


def _budgets(
    declared: Any, attributes: tuple[Attribute, ...], questions: tuple[Question, ...]
) -> tuple[bool, tuple[float, float] | None]:
    """Whether the survey has memos, and its budgets; None where all attributes are places, which have their own."""
    given = {key: declared[key] for key in ("eps", "eps_inf", "eps_1") if key in declared}
    _need(all(_number(budget) and 0 < budget <= 20 * len(attributes) for budget in given.values()), "budgets")
    placed = [attribute for attribute in attributes if attribute.placed]
    if len(placed) == len(attributes):
        _need(not given, "budgets")
        rounds = tuple(rate is not None for rate in placed[0].rates)
    else:
        _need(given.keys() in ({"eps"}, {"eps_inf"}, {"eps_inf", "eps_1"}), "budgets")
        rounds = ("eps_inf" not in given or "eps_1" in given, "eps_inf" in given)
    _need(all(tuple(rate is not None for rate in attribute.rates) == rounds for attribute in placed), "budgets")
    _need(all((question.second is not None) == all(rounds) for question in questions), "rounds")
    ever = given.get("eps", given.get("eps_inf", 0.0))
    return rounds[1], (given.get("eps_1", ever), ever) if given else None


def _shares(parts: list[Any], shares: Any, solution: str) -> tuple[float, ...] | None:
    """The share of each question; those that are named are as declared."""
    if all("share" not in part for part in parts):
        _need(shares is None, "shares")
        return None
    _need(solution == "smp" and len(shares) == len(parts) > 1, "shares")
    _need(all(part.get("share", share) == share for share, part in zip(shares, parts)), "shares")
    return _sum_to_1(shares, "shares")


def _sum_to_1(shares: list[Any], what: str) -> tuple[float, ...]:
    _need(all(_number(share) and 1e-6 <= share < 1 for share in shares) and abs(sum(shares) - 1) < 1e-9, what)
    return tuple(shares)


def _units(given: Any, calendar: Calendar) -> tuple[str, ...]:
    _keys(given, "units", "visitors")
    units = tuple(_one_of(unit, UNITS, "visitors") for unit in _list(given["units"], len(UNITS), "visitors"))
    _need(len(set(units)) == len(units), "visitors")
    _need(all(unit == "ever" or calendar.period < SHORTER[unit] * DAY for unit in units), "visitors")
    return units


def _calendar(declared: Any) -> Calendar:
    start = datetime.fromisoformat(_matching(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", declared["start"], "start")[0])
    begin, period = int(start.timestamp()), _seconds(declared["period"])
    _need(0 < period <= 366 * DAY, "period")
    if "time_zone" not in declared:
        return Calendar(begin, period)
    zone = declared["time_zone"]
    _keys(zone, "name offsets until", "time_zone")
    offsets = [(since, ahead) for since, ahead in _list(zone["offsets"], 500, "time_zone")]
    moments = [_whole(at, -(1 << 36), 1 << 36, "time_zone") for at in (*(since for since, _ in offsets), zone["until"])]
    _need(all(abs(_whole(ahead, -DAY, DAY, "time_zone")) < DAY for _, ahead in offsets), "time_zone")
    _need(all(one < other for one, other in zip(moments, moments[1:])), "time_zone")
    made = Calendar(begin, period, offsets, zone["until"])
    _need(made.begin(0) == begin and made.last > 0, "time_zone")
    return made


def _seconds(given: Any) -> int:
    found = _matching(r"(\d{1,9})([smhdw])", given, "a duration")
    return int(found[1]) * SECONDS[found[2]]


def _not_terms(what: str) -> NoReturn:
    refuse("terms", f"these are not the terms of a survey: {what}", "do not answer it")


def _need(condition: Any, what: str) -> None:
    if not condition:
        _not_terms(what)


def _keys(record: Any, known: str, what: str) -> None:
    _need(isinstance(record, dict) and record.keys() <= set(known.split()), f"{what} has a key that is not known")


def _text(given: Any) -> str:
    """Half of a surrogate pair has no bytes in UTF-8."""
    return given if isinstance(given, str) and not re.search("[\ud800-\udfff]", given) else _not_terms("text")


def _matching(pattern: str, given: Any, what: str) -> re.Match[str]:
    return re.fullmatch(pattern, _text(given), re.ASCII) or _not_terms(what)


def _list(given: Any, most: int, what: str) -> list[Any]:
    return given if isinstance(given, list) and 0 < len(given) <= most else _not_terms(what)


def _whole(given: Any, least: int, most: int, what: str) -> int:
    return given if type(given) is int and least <= given <= most else _not_terms(what)


def _number(given: Any) -> bool:
    return type(given) in (int, float) and isfinite(given)


def _one_of(given: Any, known: Iterable[Any], what: str) -> Any:
    return given if type(given) in (str, int) and given in known else _not_terms(what)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    return record if len(record) == len(pairs) else _not_terms("a key twice")
