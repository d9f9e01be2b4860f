"""Reports of known secrets, which every library must make: in Python here, in JavaScript by its own tests."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hearsay
from protocols.mechanisms import RECORDS
from protocols.mechanisms.builders.hashing import MOST_HASHES, PRIMES
from protocols.survey import Attribute, Cross, Survey
from protocols.wire import Frame, decode_report, decode_terms, row_faults
from tests.clients.cases import cases, place_cases
from tests.clients.vectors import FILE, made
from tests.helpers.node import LIBRARY, node

VECTORS = json.loads(FILE.read_text())


def test_the_vectors_are_what_devices_report_today() -> None:
    """If this fails, devices in the field would report something else; only on purpose: see tests.clients.vectors."""
    today = made()
    assert today["version"] == VECTORS["version"]
    for now, then in zip(today["cases"], VECTORS["cases"], strict=True):
        assert now == then, now["name"]


def test_the_tests_of_the_javascript_library_pass() -> None:
    run = node("--test")
    assert run.returncode == 0, run.stdout + run.stderr
    for case in VECTORS["cases"]:
        assert f"the reports of a device are those of every other library: {case['name']}" in run.stdout


def test_every_mechanism_is_in_a_vector() -> None:
    asked = {question.label for _, scheme in (*cases(), *place_cases()) for question in scheme.questions}
    assert asked == set(RECORDS)


def test_devices_in_javascript_know_every_key_of_a_survey() -> None:
    """They refuse terms with a key that they do not know."""
    known = (LIBRARY / "src" / "terms.js").read_text()
    shown = {"title", "description", "forecast", "areas", "groups", "role"}  # for people, and no part of the terms
    declared = {*Survey.model_fields, *Attribute.model_fields, *Cross.model_fields} - shown
    assert not [key for key in declared if f'"{key}"' not in known]


def test_devices_in_javascript_take_the_hashes_that_surveys_may_have() -> None:
    known = (LIBRARY / "src" / "terms.js").read_text()
    assert f"const MOST_HASHES = 1 << {MOST_HASHES.bit_length() - 1};" in known
    assert f"const FRESH_PRIMES = {list(PRIMES)};" in known


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_a_collector_takes_the_reports_of_the_vectors(case: dict) -> None:
    scheme = decode_terms(case["terms"].encode())
    for step in case["steps"]:
        frame = decode_report(step["report"].encode(), {scheme.survey.id: scheme}.get)
        assert isinstance(frame, Frame), frame
        assert not row_faults(frame, scheme, 0, 1).any()


@pytest.mark.parametrize(
    "name", ["two rounds, l-osue", "rs+fd, grr", "memo only, loloha", "one-shot, geometric", "shares"]
)
def test_a_device_reports_what_a_fleet_of_one_does(name: str) -> None:
    """The fleet knows nothing of stored state: only the gaps differ, if a report does not arrive."""
    (case,) = [case for case in VECTORS["cases"] if case["name"] == name]
    scheme = decode_terms(case["terms"].encode())
    fleet = hearsay.Fleet(scheme.survey, 1, bytes.fromhex(case["secret"]))
    for step in case["steps"]:
        report = decode_report(step["report"].encode(), {scheme.survey.id: scheme}.get)
        assert isinstance(report, Frame)
        (frame,) = fleet.frames(report.period, {name: [value] for name, value in step["values"].items()})
        assert frame.tokens == report.tokens and frame.gaps == report.gaps
        assert list(frame.answers) == list(report.answers)
        for attribute, column in frame.answers.items():
            assert np.array_equal(column, report.answers[attribute])
