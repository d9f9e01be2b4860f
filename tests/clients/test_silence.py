"""Whether, when and how often a device sends, and how long its bytes are, is no function of a value."""

import json
import random
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hearsay_device import DeviceError, Limits
from lab.auditing.gateways import answering, gateway
from protocols.errors import SurveyError
from protocols.mechanisms import RECORDS
from protocols.scheme import Scheme
from tests.clients.cases import ANY
from tests.clients.libraries import LIBRARIES, Clock, open_device
from tests.helpers.surveys import scheme_with

SURVEYS, MANY = 12, 300
DAYS = (0, 1, 1, 3, 2, 40, 400)  # clocks go back, too
START = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)  # noqa: UP017
GRID = {"at": [47.2, 6.0], "cell": "500m", "columns": 3, "rows": 2}
WRONG: list[Any] = [None, "", "zzz", -1, 10**400, 2.5, nan, inf, True, [], {}, {"x": 1}, b"a", object()]
OUTCOMES = (
    *[answering(201, b"{}")] * 4,
    answering(503),
    answering(302, location="/elsewhere"),
    answering(401),
    *(answering(409, b'{"reason": "%s"}' % reason) for reason in (b"late", b"too-far-ahead", b"repeat", b"odd")),
)
"""What a gateway may answer, to mark a device or to make it send again."""


def generated(dice: random.Random) -> Scheme:
    """Terms as a hostile gateway may choose them: small lists, tiny or large budgets, every mechanism and solution."""
    while True:
        try:
            return _drawn(dice)
        except (SurveyError, ValidationError):
            continue


def _drawn(dice: random.Random) -> Scheme:
    solution = dice.choice(["smp", "smp", "spl", "rs+fd", "rs+rfd"])
    attributes = []
    for name in ("a", "b", "c")[: dice.randint(1 + solution.startswith("rs"), 3)]:
        values = [f"v{i}" for i in range(dice.choice([2, 3, 9]))]
        attribute: dict[str, Any] = {"name": name, "mechanism": dice.choice(["auto", "auto", *RECORDS])}
        kind = dice.choice(["values", "values", "range", "grid"])
        attribute |= {"values": values} if kind == "values" else {}
        attribute |= {"range": {"last": len(values) - 1}} if kind == "range" else {}
        attribute |= {"grid": GRID} if kind == "grid" else {}
        attribute |= {"other": "v0"} if kind == "values" and dice.random() < 0.5 else {}
        if solution == "rs+rfd":
            names = values if kind == "values" else [str(i) for i in range(len(values))]
            attribute["prior"] = {each: 1 / len(names) for each in names}
        attributes.append(attribute)
    eps = dice.choice([0.02, 0.3, 1.0, 2.5])
    budgets = dice.choice([{"eps": eps}, {"eps_inf": eps}, {"eps_inf": eps, "eps_1": eps / 2}])
    more: dict[str, Any] = dice.choice([{}, {"memo_cap": 1}, {"memo_cap": 2}, {"one_in": 2}, {"horizon": 7}])
    more |= dice.choice([{}, {}, {"visitors": {"units": ["week", "ever"]}}])
    return scheme_with(*attributes, **budgets, **more, solution=solution, grace=dice.choice(["0s", "36h"]))


def observed(library: str, path: Path, seed: str, values: list[dict[str, Any]]) -> Any:
    """All that a gateway, and whoever looks at the clock, sees of a device: sizes, order and times of its requests.

    The seed chooses terms, limits and what the gateway answers; the values are the device's own.
    """
    dice = random.Random(seed)
    scheme, limits = generated(dice), dice.choice([Limits(), Limits(**ANY), Limits(report=3, value=5, ratio=1)])
    clock, seen, asked = Clock(), [], [0]

    def giving(request: BaseHTTPRequestHandler) -> None:
        asked[0] += 1
        answering(200, scheme.terms)(request)

    with (
        gateway(giving, lambda request: dice.choice(OUTCOMES)(request)) as running,
        open_device(library, path, clock, limits, entropy=seed) as device,
    ):
        for day, given in zip(DAYS, values, strict=True):
            clock.seconds = (START + timedelta(days=day)).timestamp()
            try:
                sent = device.send(running.address, "test", given)
                status = (sent.period, sent.status, sent.dropped, sent.copied)
            except DeviceError as error:
                status = error.code
            if day == 2 and device.explain()["report"]:
                device.forget_clock("test")
            shapes = [(len(report), json.loads(report)["period"]) for report in running.posted]
            seen.append(
                (status, asked[0], clock.seconds, list(clock.waited), shapes, json.dumps(device.explain()["year"]))
            )
    return seen


def histories(seed: str) -> list[list[dict[str, Any]]]:
    """Of listed values, of values that come and go, and of none."""
    dice = random.Random(f"values of {seed}")
    chosen = [*WRONG, "v0", "v1", 0, 1, "x1y1", {"x": 600.0, "y": 10.0}]
    drawn = [[{name: dice.choice(chosen) for name in ("a", "b", "c")} for _ in DAYS] for _ in range(2)]
    return [[dict.fromkeys(("a", "b", "c"), "v0")] * len(DAYS), *drawn, [{} for _ in DAYS]]


def _are_equal(tmp_path: Path, number: int, library: str) -> None:
    seed = f"silence {number}"
    first, *others = (
        observed(library, tmp_path / str(place), seed, values) for place, values in enumerate(histories(seed))
    )
    for other in others:
        assert other == first, f"seed {seed!r}"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("number", range(SURVEYS))
def test_requests_sizes_times_and_charges_are_equal_for_any_two_histories(
    tmp_path: Path, number: int, library: str
) -> None:
    _are_equal(tmp_path, number, library)


@pytest.mark.long(part="clients")
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("number", range(SURVEYS, MANY))
def test_the_same_of_many_generated_surveys(tmp_path: Path, number: int, library: str) -> None:
    _are_equal(tmp_path, number, library)


def test_most_generated_surveys_are_answered(tmp_path: Path) -> None:
    """Otherwise the tests above would compare refusals."""
    posts = 0
    for number in range(SURVEYS):
        seen = observed("python", tmp_path / str(number), f"silence {number}", histories("")[0])
        posts += len(seen[-1][4]) > 1
    assert SURVEYS / 4 < posts <= SURVEYS
