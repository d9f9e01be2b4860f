"""Surveys that together have every mechanism, solution and kind of fake."""

from __future__ import annotations

from collections.abc import Iterator
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
            if record.fits(use):
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
    yield "published calibration", scheme_with(of_size(7, mechanism="l-grr"), **one, calibration="published")
    yield "taking turns", scheme_with(of_size(4), of_size(3, "b"), eps=1, one_in=2)
    yield "taking turns, spl", scheme_with(of_size(4), of_size(3, "b"), eps=1, one_in=3, solution="spl", horizon=7)
    odd = {"name": "a", "values": ["é", "ﬁ", "𝄞", "a b", "constructor", '"'], "mechanism": "grr"}
    yield "any text", scheme_with(odd, eps=1, devices=1000, minimum=10, grace="1h", presence_epsilon=0.5)


def _pair(mechanism: str, use: Use, budgets: dict[str, Any]) -> Scheme:
    more: dict[str, Any] = {"prior": PRIOR} if use == "rs+rfd" else {}
    if mechanism == "dbitflip":
        more = {"parameter": 3}
    sizes = {"a": 9, "b": 9 if use == "rs+rfd" else 17}
    return scheme_with(*(of_size(k, name, mechanism=mechanism, **more) for name, k in sizes.items()), **budgets)
