"""Makes clients/vectors.json: what devices of a known secret must report.

    python -m tests.clients.vectors > clients/vectors.json

Every case has the terms of a survey, a secret, and days on which the device has values; `report` is what it sends then.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import hearsay
from protocols.scheme import Scheme
from tests.clients.cases import cases, local_cases

FILE = Path(__file__).parents[2] / "clients" / "vectors.json"
VERSION = 1  # of this file's shape; raised when a client must read it differently
DAYS = (0, 1, 2, 5, 6, 11)
ANY = hearsay.Limits(report=1e6, life=1e6, total=1e6)


def made() -> dict[str, Any]:
    return {"version": VERSION, "cases": [_case(name, scheme) for name, scheme in (*cases(), *local_cases())]}


def replayed(case: dict[str, Any]) -> Iterator[bytes]:
    """What the Python device reports in a case, each report confirmed before the next."""
    moment = [datetime.min]
    with tempfile.TemporaryDirectory() as directory:
        path, secret = Path(directory) / "device.db", bytes.fromhex(case["secret"])
        with hearsay.Device(path, limits=ANY, secret=secret, now=lambda: moment[0]) as device:
            survey = device.join(case["terms"].encode())
            for step in case["steps"]:
                moment[0] = datetime.fromisoformat(step["now"])
                report = device.settle(survey, step["values"])
                yield report.report
                device.confirm(survey, report.period)


def _case(name: str, scheme: Scheme) -> dict[str, Any]:
    secret = hashlib.sha256(name.encode()).hexdigest()
    moments = [_noon(scheme, day) for day in DAYS] if scheme.survey.time_zone is None else _edges(scheme)
    steps = [{"now": moment, "values": _values(scheme, place)} for place, moment in enumerate(moments)]
    case: dict[str, Any] = {"name": name, "terms": scheme.terms.decode(), "secret": secret, "steps": steps}
    for step, report in zip(steps, replayed(case), strict=True):
        step["report"] = report.decode()
    return case


def _noon(scheme: Scheme, day: int) -> str:
    return (scheme.survey.bounds(day)[0] + timedelta(hours=12)).isoformat()


def _edges(scheme: Scheme) -> list[str]:
    """The first or the last second of periods that follow each other."""
    bounds, second = scheme.survey.bounds, timedelta(seconds=1)
    ends = [bounds(1)[1] - second, bounds(2)[1] - second, bounds(4)[1] - second]
    return [at.isoformat() for at in (bounds(0)[0], ends[0], ends[1], bounds(3)[0], ends[2], bounds(5)[0])]


def _values(scheme: Scheme, place: int) -> dict[str, Any]:
    """Values that change, come back, and reach both ends."""
    return {
        a.name: a.values[(0, a.k - 1, 0, a.k // 2, a.k - 1, 1)[place] if i == 0 else (place * 5 + 3) % a.k]
        for i, a in enumerate(scheme.survey.attributes)
    }


if __name__ == "__main__":
    json.dump(made(), sys.stdout, indent=1, ensure_ascii=True)
    sys.stdout.write("\n")
