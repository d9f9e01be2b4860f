"""A hostile gateway gets nothing from a device of either library. Hostile terms are in clients/vectors.json."""

import json
import random
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler
from itertools import product
from math import inf, log, nan
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from hearsay_device import DeviceError, Limits
from hearsay_device.terms import MAX_TERMS_BYTES, read_terms
from protocols.errors import SurveyError
from protocols.mechanisms import RECORDS
from protocols.scheme import Scheme
from tests.clients.cases import ANY
from tests.clients.libraries import LIBRARIES, Clock, open_device
from tests.clients.test_device import ANYTHING, CAPPED, Days, refused
from tests.helpers.loopback import TAKEN, Handle, answering, gateway
from tests.helpers.surveys import of_size, scheme_with

VALUES = {"a": 1, "b": 1}
PEOPLE = 100
PERSON: dict[str, Any] = {"eps_inf": 3, "eps_1": 1, "memo_cap": 3}


@pytest.mark.parametrize(("k", "eps_inf", "eps_1"), [(9, 20, 15), (2, 15, 1)], ids=["one report", "all reports"])
def test_larger_budgets_are_refused_by_the_limits(
    tmp_path: Path, library: str, k: int, eps_inf: float, eps_1: float
) -> None:
    large = scheme_with(of_size(k), eps_inf=eps_inf, eps_1=eps_1)
    _gets_nothing(library, tmp_path, answering(200, large.terms), "limit", limits=Limits())


def test_surveys_that_are_joined_and_not_answered_leave_room_for_the_one_that_the_app_pins(
    tmp_path: Path, library: str
) -> None:
    with open_device(library, tmp_path / "device", Days()) as device:
        for number in range(20):
            with suppress(DeviceError):
                device.join(scheme_with(of_size(4), **PERSON, id=f"s{number}").terms, trust_first_use=True)
        own = scheme_with(of_size(4), **PERSON)
        device.join(own.terms, pin=own.fingerprint)
        assert device.settle("test", {"a": 1}).period == 0


def test_a_gateway_that_changes_its_terms_gets_reports_under_the_first_ones_only(tmp_path: Path, library: str) -> None:
    clock, terms = Days(), [CAPPED.terms]
    with (
        gateway(lambda request: answering(200, terms[0])(request)) as running,
        open_device(library, tmp_path / "device", clock, ANYTHING) as device,
    ):
        device.send(running.address, "test", VALUES)
        terms[0], clock.day = scheme_with(of_size(9), eps_inf=20, eps_1=19).terms, 1
        device.send(running.address, "test", VALUES)
    assert {json.loads(report)["fingerprint"] for report in running.posted} == {CAPPED.fingerprint}


def test_a_gateway_that_refuses_a_devices_reports_changes_no_flag_of_any_later_one(
    tmp_path: Path, library: str
) -> None:
    """Days in which two devices report, of which one is refused on some of them: what it says later is the same."""
    days, flags = (0, 1, 4, 5, 9, 30, 31, 40), []
    scheme = scheme_with(of_size(4), eps_inf=0.5, eps_1=0.3, visitors={"units": ["week", "month", "ever"]})
    for refused_days in ((), (0, 4, 9, 30)):
        clock = Days()

        def post(request: BaseHTTPRequestHandler, clock: Days = clock, some: tuple[int, ...] = refused_days) -> None:
            (answering(503) if clock.day in some else TAKEN)(request)

        with (
            gateway(answering(200, scheme.terms), post) as running,
            open_device(library, tmp_path / f"device-{len(refused_days)}", clock) as device,
        ):
            for clock.day in days:
                with suppress(DeviceError):
                    device.send(running.address, "test", {"a": 1})
        said = {int(report["period"], 16): report["flags"] for report in map(json.loads, running.posted)}
        assert sorted(said) == list(days)
        flags.append(said)
    assert flags[0] == flags[1] and set(flags[0].values()) == {"00", "02", "04", "16"}


def test_a_hundred_surveys_that_ask_the_same_learn_no_more_than_the_limits_allow(tmp_path: Path, library: str) -> None:
    """Each permutes, renames or pads the list; the old device answered all of them, and its truth was known."""
    answers = 0
    with open_device(library, tmp_path / "device", Days()) as device:
        for number in range(100):
            values = ["soup", "salad", *(f"no {number}" for _ in range(number % 2))][:: 1 if number % 3 else -1]
            scheme = scheme_with({"name": "dish", "values": values, "mechanism": "grr"}, eps=0.6, id=f"s{number}")
            try:
                device.join(scheme.terms, trust_first_use=True)
                device.settle(f"s{number}", {"dish": "soup"})
                answers += 1
            except DeviceError as error:
                assert error.code == "limit"
        told = device.explain()["value"]["dish"]
    assert answers == 5 and told == pytest.approx(0.9525741, abs=1e-6)


def asking_about_lunch(surveys: int) -> dict[str, Scheme]:
    """Surveys that all ask who eats soup: with memos and without; lists are permuted, renamed and padded."""
    found = {}
    for number in range(surveys):
        values = ["soup", "salad", *(f"no {number}" for _ in range(number % 2))][:: 1 if number % 3 else -1]
        budgets: dict[str, Any] = {"eps": 0.6} if number % 4 else {"eps_inf": 0.5, "eps_1": 0.3, "devices": 10**9}
        mechanism = "grr" if number % 4 else "l-grr"
        attribute = {"name": "dish", "values": values, "mechanism": mechanism}
        found[f"s{number}"] = scheme_with(attribute, **budgets, id=f"s{number}")
    return found


def believed(schemes: dict[str, Scheme], posted: list[bytes]) -> float:
    """The log-ratio of the chances of all that a gateway was sent, between soup and salad.

    Answers to one question come from one memo, which is summed over.
    """
    memos: dict[str, dict[str, dict[str, float]]] = {}
    for report in map(json.loads, posted):
        (question,) = read_terms(schemes[report["survey"]].terms).questions
        said, (p, q) = question.values[int(report["answers"]["dish"], 16)], _flip(question.first)
        key = question.id if question.second else f"{report['survey']} {report['period']}"
        again, other = _flip(question.second) if question.second else (1.0, 0.0)
        chances = memos.setdefault(key, {})
        for truth in ("soup", "salad"):
            before = chances.setdefault(truth, {value: p if value == truth else q for value in question.values})
            chances[truth] = {value: chance * (again if value == said else other) for value, chance in before.items()}
    return sum(log(sum(each["soup"].values()) / sum(each["salad"].values())) for each in memos.values())


def _flip(given: Any) -> tuple[float, float]:
    return given.p, given.q


@pytest.mark.long(part="clients")
def test_all_reports_together_tell_no_more_than_is_explained(tmp_path: Path, library: str) -> None:
    """Coins choose what people eat; whoever has all reports guesses it. What devices draw follows from their number."""
    from scipy.stats import binomtest  # takes over a second to import

    schemes, right = asking_about_lunch(12), 0
    dice = Random("lunch")
    for number in range(PEOPLE):
        truth = dice.choice(["soup", "salad"])
        clock = Days()
        with (
            gateway(lambda request: answering(200, schemes[request.path.rpartition("/")[2]].terms)(request)) as running,
            open_device(library, tmp_path / str(number), clock, entropy=f"lunch {number}") as device,
        ):
            for clock.day, survey in product(range(2), schemes):
                with suppress(DeviceError):
                    device.send(running.address, survey, {"dish": truth})
            explained = device.explain()["value"]["dish"]
        told = believed(schemes, running.posted)
        right += (told > 0) == (truth == "soup") if told else dice.random() < 0.5
    assert binomtest(right, PEOPLE, explained, alternative="greater").pvalue > 1e-4, (right, explained)
    assert binomtest(right, PEOPLE, 0.5, alternative="greater").pvalue < 1e-3, f"the attack learns nothing: {right}"
    assert explained <= 0.953


def _slow(head: bool) -> Handle:
    """Good terms, but byte by byte for far longer than the device waits."""

    def handle(request: BaseHTTPRequestHandler) -> None:
        answer = f"HTTP/1.0 200 OK\r\ncontent-length: {len(CAPPED.terms)}\r\n\r\n".encode() + CAPPED.terms
        drips = range(30) if head else range(60, 90)
        request.wfile.write(answer[: drips.start])
        for place in drips:
            request.wfile.write(answer[place : place + 1])
            time.sleep(0.1)
        request.wfile.write(answer[drips.stop :])

    return handle


ANSWERS = {
    "cut": (answering(200, CAPPED.terms[:100], **{"content-length": "100000"}), "gateway"),
    "half": (answering(200, CAPPED.terms[:400]), "terms"),
    "of another survey": (answering(200, scheme_with(of_size(9), eps_inf=2, eps_1=1, id="other").terms), "terms"),
    "not JSON": (answering(200, b"<html>"), "terms"),
    "not text": (answering(200, b"\xff\xfe\x00"), "terms"),
    "null": (answering(200, b"null"), "terms"),
    "too deep": (answering(200, b'{"declared":' + b"[" * 100_000), "terms"),
    "too long": (answering(200, b" " * (MAX_TERMS_BYTES + 1)), "gateway"),
    "slow": (_slow(head=False), "timeout"),
    "slow from the start": (_slow(head=True), "timeout"),
    "redirect": (answering(302, b"", location="/elsewhere"), "gateway"),
    "error": (answering(500, CAPPED.terms), "gateway"),
    "nothing of that name": (answering(404), "gateway"),
}


@pytest.mark.parametrize(("answer", "code"), ANSWERS.values(), ids=ANSWERS)
def test_answers_that_are_not_the_terms_get_nothing(tmp_path: Path, library: str, answer: Handle, code: str) -> None:
    _gets_nothing(library, tmp_path, answer, code, timeout=1 if code == "timeout" else 60)


def _gets_nothing(
    library: str, tmp_path: Path, answer: Handle, code: str, limits: Limits = ANYTHING, timeout: float = 60
) -> None:
    with gateway(answer) as running, open_device(library, tmp_path / "device", Days(), limits) as device:
        with refused(code):
            device.send(running.address, "test", VALUES, timeout=timeout)
        with refused("unknown"):
            device.settle("test", VALUES)
    assert running.posted == []


# Whether, when and how often a device sends, and how long its bytes are, is no function of a value.
SURVEYS, MANY = 12, 150
NUMBERS = [*range(SURVEYS), *(pytest.param(n, marks=pytest.mark.long(part="clients")) for n in range(SURVEYS, MANY))]
DAYS = (0, 1, 1, 3, 2, 40, 400)  # clocks go back, too
START = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)  # noqa: UP017
GRID = {"at": [47.2, 6.0], "cell": "500m", "columns": 3, "rows": 2}
WRONG: list[Any] = [None, "", "zzz", -1, 10**400, 2.5, nan, inf, True, [], {}, {"x": 1}, b"a", object()]
MOMENTS: list[dict[str, Any]] = [
    {},
    {"apart": True, "wait": 7 * 86400},
    {"apart": True, "spread": 60, "wait": 60},
    {"apart": True, "spread": 0},
]
"""How an app may ask for the moments of sending."""
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
    options = dice.choice(MOMENTS)
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
                sent = device.send(running.address, "test", given, **options)
                status = (sent.period, sent.status, sent.dropped, sent.again_at, sent.doubt)
            except DeviceError as error:
                status = (error.code, error.again_at)
            if day == 2 and device.explain()["report"]:
                with suppress(DeviceError):
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


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("number", NUMBERS)
def test_requests_sizes_times_and_charges_are_equal_for_any_two_histories(
    tmp_path: Path, number: int, library: str
) -> None:
    seed = f"silence {number}"
    first, *others = (
        observed(library, tmp_path / str(place), seed, values) for place, values in enumerate(histories(seed))
    )
    for other in others:
        assert other == first, f"seed {seed!r}"


def test_most_generated_surveys_are_answered(tmp_path: Path) -> None:
    """Otherwise the test above would compare refusals."""
    posts = 0
    for number in range(SURVEYS):
        seen = observed("python", tmp_path / str(number), f"silence {number}", histories("")[0])
        posts += len(seen[-1][4]) > 1
    assert SURVEYS / 4 < posts <= SURVEYS
