"""A survey and a truth for the tests of `import hearsay`."""

from __future__ import annotations

import typing

import hearsay

SECRET = bytes(range(32))
KEY = bytes(32)
ANY = hearsay.Limits(report=1000, value=1000, year=10_000)
COLOURS = ["red"] * 6_000 + ["blue"] * 3_000 + ["green"] * 1_000
HOURS = list(range(24)) * 417


def survey(terms: str = "eps_inf: 4, eps_1: 2", more: str = "") -> hearsay.Survey:
    return hearsay.load_survey(f"""
        {{id: buttons, start: 2026-01-01T00:00:00Z, period: 1d, horizon: 3, clock: source, {terms}, attributes: [
            {{name: colour, values: [red, green, blue]{more}}}, {{name: hour, range: {{last: 23}}{more}}}]}}""")


def truth() -> dict[str, list[typing.Any]]:
    return {"colour": COLOURS, "hour": HOURS[: len(COLOURS)]}
