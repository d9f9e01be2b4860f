"""Whether, when and how often a device sends, and how long its bytes are, is no function of a value."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hearsay_device import DeviceError, Limits
from protocols.errors import SurveyError
from protocols.mechanisms import RECORDS
from protocols.scheme import Scheme
from tests.clients.gateways import answering, gateway
from tests.clients.libraries import LIBRARIES, Clock, open_device
from tests.clients.vectors import ANY
from tests.helpers.surveys import scheme_with

SURVEYS = 40
DAYS = (0, 1, 1, 3, 40, 400)
START = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)  # noqa: UP017
GRID = {"at": [47.2, 6.0], "cell": "500m", "columns": 3, "rows": 2}
WRONG: list[Any] = [None, "", "zzz", -1, 10**9, 2.5, float("nan"), float("inf"), True, [], {}, {"x": 1}, b"a", object()]


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


def observed(library: str, path: Path, scheme: Scheme, case: str, limits: Limits, values: list[dict[str, Any]]) -> Any:
    """All that a gateway, and whoever looks at the clock, sees of a device: sizes, order and times of its requests."""
    clock, seen = Clock(), []
    posts = [0]

    def taking(request: Any) -> None:
        posts[0] += 1
        answering(503 if posts[0] % 3 == 0 else 201, b"{}")(request)

    with (
        gateway(answering(200, scheme.terms), taking) as running,
        open_device(library, path, clock, limits, entropy=case) as device,
    ):
        for day, given in zip(DAYS, values, strict=True):
            clock.seconds = (START + timedelta(days=day)).timestamp()
            try:
                status = device.send(running.address, "test", given).status
            except DeviceError as error:
                status = error.code
            spent = device.explain()["year"] if status != "unknown" else None
            shapes = [(len(report), json.loads(report)["period"]) for report in running.posted]
            seen.append((status, clock.seconds, shapes, json.dumps(spent)))
    return seen


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("number", range(SURVEYS))
def test_requests_sizes_times_and_charges_are_equal_for_any_two_histories(
    tmp_path: Path, number: int, library: str
) -> None:
    seed = f"silence {number}"
    dice = random.Random(seed)
    scheme = generated(dice)
    limits = dice.choice([Limits(), Limits(**ANY), Limits(report=3, value=5, ratio=1)])
    names = [attribute.name for attribute in scheme.survey.attributes]
    listed = [[dict.fromkeys(names, "v0")] * len(DAYS)]
    chosen = [*WRONG, "v0", "v1", 0, 1, "x1y1", {"x": 600.0, "y": 10.0}]
    drawn = [[{name: dice.choice(chosen) for name in names} for _ in DAYS] for _ in range(2)]
    histories = [*listed, *drawn, [{} for _ in DAYS]]
    seen = [
        observed(library, tmp_path / str(place), scheme, seed, limits, values) for place, values in enumerate(histories)
    ]
    for other in seen[1:]:
        assert other == seen[0], f"seed {seed!r}"


def test_most_generated_surveys_are_answered() -> None:
    """Otherwise the test above would compare refusals."""
    joined = 0
    for number in range(SURVEYS):
        scheme = generated(random.Random(f"silence {number}"))
        joined += scheme.survey.longitudinal
    assert SURVEYS / 4 < joined < SURVEYS
