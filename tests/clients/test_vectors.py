"""What every device library must do: in Python here, in JavaScript by its own tests."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hearsay_device import Device, DeviceError, Limits, attributes, questions, terms
from protocols.mechanisms import RECORDS
from protocols.scheme import Scheme
from protocols.survey import Attribute, Survey
from protocols.survey_text import keys_of
from protocols.wire import Frame, decode_report, row_faults
from tests.clients.cases import ANY, FILE, cases, changed, made, place_cases, table_cases, text_of, values_of
from tests.clients.libraries import LIBRARIES, Clock, open_device
from tests.helpers.node import LIBRARY, node
from tests.helpers.terms import decode_terms

VECTORS = json.loads(FILE.read_text())
SCHEMES = table_cases()
DEVICES = 25


def test_the_vectors_are_what_devices_report_today() -> None:
    """If this fails, devices in the field would report something else; only on purpose: see tests.clients.cases."""
    today = json.loads(text_of(made()))
    for now, then in zip(today["cases"], VECTORS["cases"], strict=True):
        assert now == then, now["name"]
    assert today == VECTORS


def test_an_edge_names_questions_and_orders_their_values_as_devices_do() -> None:
    for vector in VECTORS["questions"]:
        scheme = SCHEMES[vector["name"]]
        own = {q.name: {"id": q.id, "order": q.order.tolist()} for q in scheme.questions}
        ids = {"sampled": scheme.sampled_id, "turn": scheme.turn_id, "tuple": min(scheme.memo_ids.values())}
        assert {
            "questions": own,
            **{what: ids[what] for what in ids if what in vector},
            "name": vector["name"],
        } == vector
    for name, scheme in (*cases(), *place_cases()):
        theirs = terms.read_terms(scheme.terms).questions
        assert [(q.id, q.order.tolist()) for q in scheme.questions] == [(q.id, list(q.order)) for q in theirs], name


GOOD_TERMS = {
    **VECTORS["hostile"]["terms"],
    **{each["name"]: each["terms"] for each in VECTORS["signed"]},
}
CHANGES = [*VECTORS["hostile"]["changes"], *VECTORS["hostile"]["signed"]]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change["name"])
def test_hostile_terms_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    terms = changed(GOOD_TERMS[change["terms"]], change)
    refused = None
    with Device(tmp_path / "device", limits=Limits(**ANY)) as device:
        try:
            device.join(terms, trust_first_use=True)
        except DeviceError as error:
            refused = error.code
    assert refused == change["refused"]


def test_the_tests_of_the_javascript_library_pass() -> None:
    run = node("--test", "tests/")
    assert run.returncode == 0, run.stdout + run.stderr
    for case in VECTORS["cases"]:
        assert f"a device does what every other library does: {case['name']}" in run.stdout
    for change in CHANGES:
        assert f"hostile terms are refused: {change['name']}" in run.stdout


def test_every_mechanism_is_in_a_vector() -> None:
    asked = {question.label for _, scheme in (*cases(), *place_cases()) for question in scheme.questions}
    assert asked == set(RECORDS) - {"geo-tight"}  # which devices refuse


def test_devices_in_both_languages_know_every_key_of_a_survey() -> None:
    no_terms = "title description contact forecast nowcast areas signature groups role quantiles correction"
    shown = set(no_terms.split())
    of_surveys = {2: terms.DECLARED_BEFORE_3, 3: terms.DECLARED_FROM_3}
    of_attributes = {2: "several", 3: "multi_select"}
    for model, common, own in ((Survey, terms.DECLARED, of_surveys), (Attribute, attributes.ATTRIBUTE, of_attributes)):
        for version, further in own.items():
            assert {*common.split(), *further.split()} == keys_of(model, version).keys() - shown
    source = (LIBRARY / "device.js").read_text()
    lists = (terms.DECLARED, terms.DECLARED_BEFORE_3, terms.DECLARED_FROM_3, attributes.ATTRIBUTE, terms.RESOLVED)
    for text in lists:
        assert re.sub(r'" \+\s+"', "", source).count(f'"{text}"') == 1
    assert str(list(questions.FRESH_PRIMES)) in source and f"1 << {questions.MOST_HASHES.bit_length() - 1}" in source


def test_the_libraries_can_be_read_by_somebody_who_does_not_trust_them_and_need_no_others() -> None:
    assert (LIBRARY / "device.js").stat().st_size < 80_000
    assert "dependencies" not in (LIBRARY / "package.json").read_text()
    source = (LIBRARY / "device.js").read_text()
    always = {"./errors.js", "./gateway.js", "./moments.js", "./presence.js", "./recorder.js", "./state.js"}
    assert set(re.findall(r'from "([^"]+)"', source)) == always
    # Only when they are needed: in Node.js, of places, of ordered values and shared questions, and of signed terms.
    needed = {"node:crypto", "./node.js", "./places.js", "./losses.js", "./signatures.js"}
    assert set(re.findall(r'import\((?:/\*.*?\*/ )?"([^"]+)"', source)) == needed
    assert sum(len(path.read_text().splitlines()) for path in LIBRARY.glob("*.js")) <= 2600
    lengths = [len(path.read_text().splitlines()) for path in Path(terms.__file__).parent.glob("*.py")]
    assert sum(lengths) <= 3000 and max(lengths) <= 300


@pytest.mark.long(part="clients")
@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_many_devices_of_both_libraries_make_the_same_reports(tmp_path: Path, scheme: Scheme) -> None:
    """A vector is of one device, and some draws are rare. That Python's follow the channel, test_tables.py shows."""
    for number in range(DEVICES):
        reports = []
        for library in LIBRARIES:
            clock, path = Clock(scheme.survey.start.timestamp()), tmp_path / f"{library} {number}"
            with open_device(library, path, clock, Limits(**ANY), entropy=f"device {number}") as device:
                device.join(scheme.terms, trust_first_use=True)
                reports.append(device.settle(scheme.survey.id, values_of(scheme, number % 4)))
        assert reports[0] == reports[1], number


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_a_collector_takes_the_reports_of_the_vectors(case: dict[str, Any]) -> None:
    known = {survey: decode_terms(text.encode()) for survey, text in case["terms"].items()}
    for step in case["steps"]:
        if "report" not in step:
            continue
        frame = decode_report(step["report"].encode(), known.get)
        assert isinstance(frame, Frame), frame
        assert not row_faults(frame, known[frame.survey], 0, 1).any()
