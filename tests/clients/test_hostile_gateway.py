"""A hostile gateway gets nothing from the Python device; clients/javascript has the same tests for its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import hearsay
from protocols.errors import DeviceError
from protocols.wire.terms import MAX_TERMS_BYTES
from tests.clients.gateways import Handle, answering, gateway
from tests.clients.test_device import CAPPED, Clock, refused
from tests.clients.vectors import ANY
from tests.helpers.surveys import of_size, scheme_with

DIRECT = scheme_with(of_size(9, mechanism="l-grr"), of_size(5, "b"), eps_inf=2, eps_1=0.6)
ORDERED = scheme_with(of_size(9, mechanism="l-geometric"), eps_inf=2, eps_1=0.6)
VALUES = {"a": 1, "b": 1}


def first(**change: Any) -> Callable[[dict[str, Any]], None]:
    return lambda terms: terms["questions"][0].update(change)


def declared(**change: Any) -> Callable[[dict[str, Any]], None]:
    return lambda terms: terms["declared"].update(change)


HOSTILE = {
    "truth": first(first={"p": 1.0, "q": 0.0}, second={"p": 1.0, "q": 0.0}),
    "nearly the truth": first(second={"p": 0.9999, "q": 0.0000125}),
    "one bit": first(second={"p": 0.5, "q": 0.0625}),
    "one round": first(second=None),
    "smaller budgets": declared(eps_inf=1.0),
    "larger budgets without their tables": declared(eps_inf=20.0, eps_1=19.0),
    "unknown key": declared(exactly=True),
    "another version": lambda terms: terms.update(version=2),
    "no questions": lambda terms: terms.update(questions=[]),
    "nothing declared": lambda terms: terms.pop("declared"),
    "another survey": declared(id="other"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("scheme", [DIRECT, ORDERED], ids=["direct", "ordered"])
def test_terms_that_are_not_what_their_budgets_resolve_to_get_nothing(
    tmp_path: Path, scheme: Any, change: Callable[[dict[str, Any]], None]
) -> None:
    terms = json.loads(scheme.terms)
    change(terms)
    _gets_nothing(tmp_path, answering(200, _canonical(terms)), "terms")


def test_the_same_terms_written_otherwise_get_nothing(tmp_path: Path) -> None:
    _gets_nothing(tmp_path, answering(200, json.dumps(json.loads(DIRECT.terms)).encode()), "terms")


def test_larger_budgets_are_refused_by_the_limits(tmp_path: Path) -> None:
    large = scheme_with(of_size(9), eps_inf=20, eps_1=19)
    _gets_nothing(tmp_path, answering(200, large.terms), "limit", limits=None)


def test_terms_that_changed_or_that_are_not_pinned_are_refused(tmp_path: Path) -> None:
    other = scheme_with(of_size(9), eps_inf=2, eps_1=0.9, memo_cap=2)
    with hearsay.Device(tmp_path / "one.db", now=Clock(), limits=ANY) as device:
        device.join(CAPPED.terms)
        with refused("changed"):
            device.join(other.terms)
    for pins in ({}, {"test": other.fingerprint}):
        with hearsay.Device(tmp_path / "two.db", now=Clock(), limits=ANY, pins=pins) as device, refused("pin"):
            device.join(CAPPED.terms)
    with hearsay.Device(tmp_path / "one.db", now=Clock(), limits=ANY, pins={}) as device, refused("pin"):
        device.settle("test", VALUES)


def test_a_gateway_that_changes_its_terms_gets_reports_under_the_first_ones_only(tmp_path: Path) -> None:
    clock, terms = Clock(), [CAPPED.terms]
    with (
        gateway(lambda request: answering(200, terms[0])(request)) as running,
        hearsay.Device(tmp_path / "device.db", now=clock, limits=ANY) as device,
    ):
        device.send(running.address, "test", VALUES)
        terms[0], clock.day = scheme_with(of_size(9), eps_inf=20, eps_1=19).terms, 1
        device.send(running.address, "test", VALUES)
    assert {json.loads(report)["fingerprint"] for report in running.posted} == {CAPPED.fingerprint}


def _cut(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("content-length", "100000")
    request.end_headers()
    request.wfile.write(CAPPED.terms[:100])
    request.close_connection = True


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
    "cut": _cut,
    "half": answering(200, CAPPED.terms[:400]),
    "not JSON": answering(200, b"<html>"),
    "not text": answering(200, b"\xff\xfe\x00"),
    "null": answering(200, b"null"),
    "too deep": answering(200, b'{"declared":' + b"[" * 100_000),
    "too long": answering(200, b" " * (MAX_TERMS_BYTES + 1)),
    "slow": _slow(head=False),
    "slow from the start": _slow(head=True),
    "redirect": answering(302, b"", location="/elsewhere"),
    "error": answering(500, CAPPED.terms),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_answers_that_are_no_terms_get_nothing(tmp_path: Path, answer: Handle) -> None:
    _gets_nothing(tmp_path, answer, "gateway", "terms", timeout=1)


def _gets_nothing(
    tmp_path: Path, answer: Handle, *codes: str, limits: hearsay.Limits | None = ANY, timeout: float = 60
) -> None:
    with (
        gateway(answer) as running,
        hearsay.Device(tmp_path / "device.db", now=Clock(), limits=limits) as device,
    ):
        with pytest.raises(DeviceError, check=lambda error: error.code in codes):
            device.send(running.address, "test", VALUES, timeout=timeout)
        with refused("unknown"):
            device.settle("test", VALUES)
    assert running.posted == []


def _canonical(terms: dict[str, Any]) -> bytes:
    return json.dumps(terms, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
