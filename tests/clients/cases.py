"""Surveys with every mechanism, and what devices must do: `python -m tests.clients.cases > clients/vectors.json`."""

import hmac
import json
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from warnings import catch_warnings

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hearsay_device import Device, DeviceError, Limits
from hearsay_device.draws import parts
from hearsay_device.terms import UNITS, read_terms
from protocols.mechanisms import RECORDS, Use
from protocols.scheme import Scheme
from tests.helpers.surveys import of_size, scheme_with, sets_of, third

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


def third_cases() -> list[tuple[str, Scheme]]:
    """Surveys of version 3: their reports are those of version 2, but for the fingerprint and what is drawn with it."""
    return [(name, _of_its_version(**terms)) for name, terms in DATA["version 3"].items()]


@cache
def table_cases() -> dict[str, Scheme]:
    """All of them."""
    return dict([*cases(), *local_cases(), *place_cases(), *set_cases(), *third_cases()])


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
    """Good terms; where they are changed and to what, and the code of the refusal; null: they may be joined.

    The changes under `signed` are of the terms that the vectors have under this name.
    """
    given = DATA["hostile"]
    terms = {name: _compiled(**terms).terms.decode() for name, terms in given["terms"].items()}
    return {"terms": terms, "signed": given["signed"], "changes": given["changes"]}


AUTHOR = Ed25519PrivateKey.from_private_bytes(sha256(b"the author of the vectors").digest())


def signed() -> list[dict[str, Any]]:
    """Terms of every version, with all pins that are taken for them, and the signature of an author."""
    author = b64encode(AUTHOR.public_key().public_bytes_raw()).decode()
    return [
        {
            "name": name,
            "terms": scheme.terms.decode(),
            "fingerprint": scheme.fingerprint,
            "pins": sorted({scheme.pin, scheme.digest}, key=len),
            "author": author,
            "signature": b64encode(AUTHOR.sign(scheme.signed)).decode(),
        }
        for name, scheme in signed_cases().items()
    ]


@cache
def signed_cases() -> dict[str, Scheme]:
    return {name: _of_its_version(**terms) for name, terms in DATA["signed"].items()}


def _of_its_version(attributes: list[dict[str, Any]], version: int = 2, **terms: Any) -> Scheme:
    compiled = third if version == 3 else scheme_with
    return compiled(*attributes, **terms)


FILE = Path(__file__).parents[2] / "clients" / "vectors.json"
VERSION = 3  # of this file's shape; raised when a client must read it differently
ANY = {"report": 1e6, "value": 1e6, "year": 1e7, "week": 1e6, "ratio": 1, "shortest": 60, "horizon": 65535}
DIGITS = 9  # of figures, which libraries compute in floating point


def made() -> dict[str, Any]:
    return {
        "version": VERSION,
        "any": ANY,
        "cases": [
            *(_case(name, scheme) for name, scheme in table_cases().items()),
            *(_scenario(**scenario) for scenario in scenarios()),
        ],
        "questions": [_questions(name, scheme) for name, scheme in table_cases().items() if name in ASKED],
        "flags": _flags(),
        "hostile": hostile(),
        "signed": signed(),
    }


ASKED = {"two rounds, l-grr", "two rounds, l-geometric", "capped, loloha", "rs+fd, grr", "rs+rfd, grr", "shares", "taking turns", "a cross", "sets, two rounds, l-grr"}  # fmt: skip  # noqa: E501


def entropy_of(case: str) -> Callable[[str], bytes]:
    """What the device of a case draws from the system, by what it is for."""
    return lambda name: sha256(parts(case, name)).digest()


class Drawn:
    """What the device of a case draws from the system.

    Keys of periods are those of the chains that devices had in version 2 of the vectors: so the
    reports are what they were. A device draws the key of a period while it settles it.
    """

    def __init__(self, case: str) -> None:
        self._own = entropy_of(case)
        self._chains: dict[str, tuple[int, bytes]] = {}
        self.key = b""  # of the last report

    def begin(self, survey: str, period: int) -> None:
        """A chain of a survey begins with a period."""
        self._chains[survey] = (period, self._own(f"period {survey} {period}"))

    def __call__(self, name: str) -> bytes:
        if not name.startswith("period "):
            return self._own(name)
        _, survey, period = name.split(" ")
        first, key = self._chains[survey]
        for _ in range(int(period) - first):
            key = hmac.digest(key, b"hearsay next", "sha256")
        self.key = key
        return key


def replayed(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each step of a case, with what the Python device makes of it."""
    clock = SimpleNamespace(seconds=0.0)
    drawn = Drawn(case["name"])
    with tempfile.TemporaryDirectory() as directory:
        limits = Limits(**(ANY if case["limits"] == "any" else case["limits"]))
        options: dict[str, Any] = {
            "now": lambda: clock.seconds,
            "entropy": drawn,
            "uptime": lambda: ("the machine never restarts", clock.seconds),
        }
        with (
            catch_warnings(action="ignore", category=UserWarning),  # of names that are not asked
            Device(Path(directory) / "device", limits=limits, **options) as device,
        ):
            for step in case["steps"]:
                clock.seconds = datetime.fromisoformat(step["now"]).timestamp()
                asked = {key: step[key] for key in ASKED_IN_STEPS if key in step}
                try:
                    yield {**asked, **_done(device, case, step, drawn)}
                except DeviceError as error:
                    yield {**asked, "refused": error.code}


ASKED_IN_STEPS = ("now", "do", "survey", "pinned", "credential", "values")
EXPLAINED = ("report", "value", "year", "shared")


def _done(device: Device, case: dict[str, Any], step: dict[str, Any], drawn: Drawn) -> dict[str, Any]:
    survey = step.get("survey", "")
    if step["do"] == "join":
        terms = read_terms(case["terms"][survey].encode())
        pin = terms.pin if step.get("pinned") else None
        credential = step.get("credential")
        device.join(case["terms"][survey].encode(), pin=pin, trust_first_use=True, credential=credential)
        now = datetime.fromisoformat(step["now"]).timestamp()
        drawn.begin(survey, max(0, terms.calendar.of(int(now))))
    elif step["do"] == "settle":
        report = device.settle(survey, step["values"])
        unlisted = {"unlisted": list(report.unlisted)} if report.unlisted else {}
        return {"key": drawn.key.hex(), "report": report.report.decode(), **unlisted}
    elif step["do"] == "explain":
        told = device.explain()
        return {"explained": _rounded({name: told[name] for name in EXPLAINED})}
    elif step["do"] == "forget_clock":
        device.forget_clock(survey)
        drawn.begin(survey, 0)
    else:
        getattr(device, step["do"])(survey)
    return {}


def _rounded(given: Any) -> Any:
    if isinstance(given, dict):
        return {name: _rounded(each) for name, each in given.items()}
    return round(given, DIGITS) if isinstance(given, float) else given


def _case(name: str, scheme: Scheme) -> dict[str, Any]:
    """A survey that is joined and answered on some days."""
    moments = [_noon(scheme, day) for day in (0, 1, 5)] if scheme.survey.time_zone is None else _edges(scheme)
    survey = scheme.survey.id
    steps: list[dict[str, Any]] = [{"now": moments[0], "do": "join", "survey": survey}]
    for place, now in enumerate(moments):
        steps.append({"now": now, "do": "settle", "survey": survey, "values": values_of(scheme, place)})
    steps.append({"now": moments[-1], "do": "explain"})
    return _scenario(name=name, schemes=[scheme], steps=steps, limits=ANY)


def _scenario(
    name: str, schemes: list[Scheme], steps: list[dict[str, Any]], limits: dict[str, Any] | None = None
) -> dict[str, Any]:
    terms = {scheme.survey.id: scheme.terms.decode() for scheme in schemes}
    shown = "any" if limits is ANY else limits or {}
    case = {"name": name, "limits": shown, "terms": terms, "steps": steps}
    return {**case, "steps": list(replayed(case))}


def _questions(name: str, scheme: Scheme) -> dict[str, Any]:
    terms = read_terms(scheme.terms)
    found: dict[str, Any] = {
        "name": name,
        "questions": {
            question.name: {"id": question.id, "order": list(question.order)} for question in terms.questions
        },
    }
    if terms.hides:
        found["tuple"] = terms.id_of("tuple")
    if terms.sampling:
        found["sampled"] = terms.id_of("sampled")
    if terms.one_in > 1:
        found["turn"] = terms.id_of("turn")
    return found


def _flags() -> dict[str, Any]:
    """A year of days and of hours in a zone whose clocks change; the period, the last settled one, and the flags."""
    found = {}
    for name, scheme in zone_year():
        calendar = read_terms(scheme.terms).calendar
        days = 1 if calendar.period >= 86400 else 24
        pairs = [(p, None if p == 0 else p - gap) for p in range(0, 370 * days, 5 * days + days // 2) for gap in (1, 9)]
        around = [begin * days + hour for begin in (87, 88, 297, 298) for hour in range(days)]
        pairs += [(p, p - 1) for p in around]
        found[name] = {
            "start": scheme.survey.declared_terms["start"],
            "period": scheme.survey.declared_terms["period"],
            "time_zone": scheme.survey.declared_terms["time_zone"],
            "units": list(UNITS),
            "reports": [
                [p, before, f"{calendar.flags(p, before, UNITS):02x}"]
                for p, before in sorted(set(pairs), key=str)
                if before is None or before >= 0
            ],
        }
    return found


def _noon(scheme: Scheme, day: int) -> str:
    return (scheme.survey.bounds(day)[0] + timedelta(hours=12)).isoformat()


def _edges(scheme: Scheme) -> list[str]:
    """The first or the last second of periods that follow each other."""
    bounds, second = scheme.survey.bounds, timedelta(seconds=1)
    moments = (bounds(0)[0], bounds(1)[1] - second, bounds(2)[1] - second, bounds(3)[0])
    return [at.astimezone(UTC).isoformat() for at in moments]


def values_of(scheme: Scheme, place: int) -> dict[str, Any]:
    """Values that change, come back, and reach both ends."""
    values: dict[str, Any] = {
        a.name: a.values[(0, a.k - 1, a.k // 2, 1)[place] if i == 0 else (place * 5 + 3) % a.k]
        for i, a in enumerate(scheme.survey.attributes)
    }
    for attribute in scheme.survey.attributes:
        if attribute.several is not None:  # none, one that is listed twice, more than are counted, one that is unknown
            v = attribute.values
            values[attribute.name] = [[], [v[0], v[9], v[0]], [*v[::-4], "unknown"], [v[9], v[2]]][place]
        if attribute.grid is not None and place < 2:  # near a border, and beyond it by less than a quarter of a cell
            x, y = (start + 2 * attribute.grid.cell for start in attribute.grid.origin)
            values[attribute.name] = {"x": x + (-0.1, 0.2)[place] * attribute.grid.cell, "y": y}
    return values


def changed(terms: str, change: dict[str, Any]) -> bytes:
    """Terms after a hostile change."""
    made = json.loads(terms)
    *way, last = change["path"]
    where: Any = made
    for key in way:
        where = where[key]
    if change.get("delete"):
        del where[last]
    else:
        where[last] = change["value"]
    return json.dumps(made).encode()


def text_of(given: Any, depth: int = 0) -> str:
    """JSON with a line for each step, report and term, so that people can read it."""
    whole = json.dumps(given, ensure_ascii=True)
    if depth > 4 or len(whole) <= 120 or not isinstance(given, dict | list):
        return whole
    if isinstance(given, list):
        inner = [text_of(each, depth + 1 if isinstance(each, dict) and "now" not in each else 9) for each in given]
    else:
        inner = [f"{json.dumps(name)}: {text_of(each, depth + 1)}" for name, each in given.items()]
    ends = "[]" if isinstance(given, list) else "{}"
    begin = "\n" + " " * (depth + 1)
    return ends[0] + begin + ("," + begin).join(inner) + "\n" + " " * depth + ends[1]


def main() -> None:
    sys.stdout.write(text_of(made()) + "\n")


if __name__ == "__main__":
    main()
