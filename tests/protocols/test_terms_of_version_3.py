"""Terms of version 3: their keys, what they release, and what they are known by; versions 1 and 2 stay as they were."""

import json
from base64 import b64decode
from copy import deepcopy
from functools import reduce
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lab.auditing.auditing import budgets
from protocols.errors import SurveyError
from protocols.scheme import Scheme
from protocols.survey import Survey, undecided, version_of_new_texts
from protocols.survey.versions import keys
from protocols.survey_text import format_survey, json_schema, parse_survey, reference
from tests.clients.cases import FILE, signed_cases, table_cases
from tests.helpers.surveys import of_size, scheme_with, sets_of, third

REFUSED = json.loads((Path(__file__).parent / "refused_of_version_3.json").read_text())
"""By kind of survey: terms that are good, what makes them wrong, and what the error must say."""
ROWS = [(kind, change, words) for kind, case in REFUSED.items() for change, *words in case["refused"]]
UNITS = ("day", "week", "month", "year", "ever")
NOISE: dict[str, Any] = {"eps": 1, "presence_epsilon": 1}


def read(terms: dict[str, Any], change: dict[str, Any], version: int | None = 3) -> Survey:
    """A survey in which some keys, named by their paths, have other values, or are left out."""
    data: Any = deepcopy(terms)
    for path, value in deepcopy(change).items():
        *way, last = (int(part) if part.isdigit() else part for part in path.split("."))
        where = reduce(lambda inside, part: inside[part], way, data)
        where[last] = value
        if value == "LEFT OUT":
            del where[last]
    return parse_survey(json.dumps(data, indent=1), "survey.yaml", version=version)


@pytest.mark.parametrize("kind", REFUSED)
def test_the_surveys_to_be_changed_are_good(kind: str) -> None:
    survey = read(REFUSED[kind]["terms"], {})
    assert survey.version == 3 and survey.presence_is_decided


@pytest.mark.parametrize(
    ("kind", "change", "words"), ROWS, ids=[f"{change} {words[-1][:40]}" for _, change, words in ROWS]
)
def test_what_is_wrong_is_refused_with_what_to_do(kind: str, change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SurveyError) as error:
        read(REFUSED[kind]["terms"], change)
    said = f"{error.value} {error.value.hint}"
    assert said.startswith("survey.yaml: ")
    assert [word for word in words if word not in said] == [], said


@pytest.mark.parametrize(
    ("key", "value", "instead"),
    [
        ("lookback", 7, "terms of version 2 have `horizon` in place of `lookback`; write `horizon`"),
        ("publish_from", 20, "survey buttons: terms of version 2 have no `publish_from`; leave it out"),
        ("numbers", ["period"], "have no `numbers`"),
        ("new", [], "have no `new`"),
        ("tables", [], "have no `tables`"),
        ("rolling", [], "have no `rolling`"),
        ("attributes.0.multi_select", 2, "version 2 have `several` in place of `multi_select`; write `several`"),
    ],
)
def test_new_keys_are_refused_in_version_2_of_texts_and_of_stored_surveys(key: str, value: Any, instead: str) -> None:
    terms = {**REFUSED["by gaps, with noise"]["terms"]}
    del terms["lookback"]
    with pytest.raises(SurveyError) as error:
        read(terms, {key: value}, version=2)
    assert instead in error.value.message and "line " in error.value.message
    if "." not in key:
        with pytest.raises(ValueError, match=key):
            Survey.model_validate({**terms, key: value})
        with pytest.raises(ValueError, match=key):
            Survey.model_validate_json(json.dumps({**terms, key: value}))


def test_texts_of_new_surveys_are_version_2_until_one_constant_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices in the field would refuse other terms: change it when both device libraries know version 3."""
    text = json.dumps(REFUSED["by gaps, with noise"]["terms"])
    assert version_of_new_texts() == 2
    with pytest.raises(SurveyError, match="lookback"):
        parse_survey(text)
    monkeypatch.setattr(keys, "NEW_TEXTS", 3)
    assert parse_survey(text).version == 3
    with pytest.raises(SurveyError, match="write `horizon`, or give the survey a new id"):
        parse_survey(text, counted=lambda survey: 2)
    assert "`publish_from`" in reference() and "`minimum`" not in reference()
    assert "Rolling" in json_schema()["$defs"]


def test_the_reference_and_the_schema_of_today_have_no_key_of_version_3() -> None:
    shown = reference() + json.dumps(json_schema())
    assert [key for key in (*keys.SINCE_3, "lookback", "multi_select", "Rolling") if f"`{key}`" in shown] == []
    assert [key for key in ("lookback", "publish_from", "version") if key in json_schema()["properties"]] == []


def test_stored_surveys_of_versions_1_and_2_have_not_changed_by_a_byte() -> None:
    """Of all surveys of the vectors; release 0.3 has written the digest."""
    surveys = [scheme.survey for scheme in table_cases().values()]
    stored = [survey.model_dump_json().encode() for survey in surveys if survey.version < 3]
    assert sha256(b"\n".join(stored)).hexdigest() == "534771bed15a2ab0ecacbcc98768c152d4aa9be349753aa712aa50e738e71493"


@pytest.mark.parametrize("name", signed_cases())
def test_a_survey_is_read_again_from_how_it_is_stored_and_from_its_text(name: str) -> None:
    scheme = signed_cases()[name]
    survey = scheme.survey
    assert Survey.model_validate_json(survey.model_dump_json()) == survey
    assert Survey.model_validate(survey.model_dump()) == survey
    again = parse_survey(format_survey(survey), version=survey.version)
    assert Scheme(again).terms == scheme.terms


def test_stored_surveys_of_version_3_have_its_keys() -> None:
    stored = json.loads(
        third(sets_of(4, 2, "multi_select"), eps=1, lookback=7, publish_from=0).survey.model_dump_json()
    )
    assert stored["version"] == 3 and stored["lookback"] == 7 and stored["publish_from"] == 0
    assert stored["attributes"][0]["multi_select"] == 2
    assert not {"horizon", "minimum"} & stored.keys() and "several" not in stored["attributes"][0]


@pytest.mark.parametrize("name", [name for name in signed_cases() if name.startswith("version 3")])
def test_declared_terms_have_the_keys_of_version_3_and_no_defaults(name: str) -> None:
    scheme = signed_cases()[name]
    resolved = json.loads(scheme.terms)
    declared = resolved["declared"]
    given = json.loads((Path(__file__).parents[1] / "clients" / "cases.json").read_text())["signed"][name]
    assert resolved["version"] == 3
    own = {*given} - {"version"} | {"id", "start", "period", "attributes"}
    assert declared.keys() == own, "what is stated, and nothing else"
    for key in own & {"publish_from", "numbers", "new", "tables", "rolling", "lookback"}:
        assert declared[key] == given[key]


def test_a_survey_is_version_3_because_it_was_read_so() -> None:
    plain = [of_size(3)]
    one, three = scheme_with(*plain, eps=1), third(*plain, eps=1, publish_from=0)
    assert (json.loads(one.terms)["version"], json.loads(three.terms)["version"]) == (1, 3)
    assert one.fingerprint != three.fingerprint
    assert third(*plain, eps=1).survey.version == 3, "without any new key"


def test_questions_and_what_draws_are_keyed_by_do_not_depend_on_the_version() -> None:
    """Otherwise memos of a question would be drawn anew in version 3, and cost again."""
    second = scheme_with(sets_of(30, 4), of_size(3, "b"), eps_inf=2, eps_1=1)
    last = third(sets_of(30, 4, "multi_select"), of_size(3, "b"), eps_inf=2, eps_1=1, publish_from=20)
    assert [question.id for question in second.questions] == [question.id for question in last.questions]
    assert [question.terms for question in second.questions] == [question.terms for question in last.questions]
    assert (second.memo_ids, second.sampled_id, second.turn_id) == (last.memo_ids, last.sampled_id, last.turn_id)


def test_however_lists_are_written_their_terms_are_the_same() -> None:
    usual = third(of_size(3), **NOISE, period="1h", visitors={"units": UNITS})
    stated = third(
        of_size(3),
        **NOISE,
        period="1h",
        visitors={"units": UNITS},
        numbers=["year", "period", "month", "week", "day"],
        new=["year"],
        tables=["period"],
    )
    assert stated.terms == usual.terms
    windows = [{"days": 30, "every": 7}, {"days": 7, "every": 1}]
    one, other = (third(of_size(3), **NOISE, lookback=31, rolling=each) for each in (windows, windows[::-1]))
    assert one.terms == other.terms
    assert json.loads(one.terms)["declared"]["rolling"] == windows[::-1]
    empty = third(of_size(3), **NOISE, lookback=31, rolling=[])
    assert "rolling" not in json.loads(empty.terms)["declared"]


@pytest.mark.parametrize(
    ("terms", "numbers", "new", "tables"),
    [
        ({}, "period", "", "period"),
        ({"lookback": 3}, "period", "period", "period"),
        ({"lookback": 7}, "period week", "week", "period"),
        ({"period": "1h", "lookback": 24}, "period day", "day", "period"),
        ({"period": "1h", "lookback": 168}, "period day week", "week", "period"),
        ({"period": "1w", "lookback": 5}, "period", "period", "period"),
        ({"visitors": {"units": ["ever", "month", "week"]}}, "period week month", "month", "period"),
        ({"visitors": {"units": ["month", "week"]}}, "period week month", "", "period"),
        ({"visitors": {"units": ["ever"]}}, "period", "period", "period"),
        ({"period": "1h", "visitors": {"units": UNITS}}, "period day week month year", "year", "period"),
        ({"visitors": {"units": ["ever", "week"]}, "numbers": ["week"]}, "week", "week", "week"),
        ({"period": "1h", "visitors": {"units": UNITS}, "numbers": ["day", "week"]}, "day week", "week", "day"),
        (
            {"period": "1h", "visitors": {"units": UNITS}, "numbers": ["year", "day", "month"]},
            "day month year",
            "year",
            "day",
        ),
        ({"visitors": {"units": ["ever", "week"]}, "new": [], "tables": []}, "period week", "", ""),
    ],
)
def test_lists_that_a_survey_does_not_name_have_their_defaults(
    terms: dict[str, Any], numbers: str, new: str, tables: str
) -> None:
    found = third(of_size(3), **NOISE, **terms).survey.released
    lists = (found.numbers, found.new, found.tables)
    assert lists == (tuple(numbers.split()), tuple(new.split()), tuple(tables.split()))
    if not terms.keys() & {"numbers", "new", "tables"}:
        former = {"horizon" if key == "lookback" else key: value for key, value in terms.items()}
        assert scheme_with(of_size(3), **NOISE, **former).survey.released == found, "of version 2, too"


def test_the_threshold_is_the_one_of_the_version() -> None:
    assert third(of_size(3), eps=1, publish_from=20).survey.threshold == 20
    assert third(of_size(3), eps=1, presence_epsilon=1).survey.threshold == 0
    assert scheme_with(of_size(3), eps=1, minimum=30).survey.threshold == 30
    assert scheme_with(of_size(3), **NOISE, minimum=30).survey.threshold == 0, "noise takes its place"


def test_a_survey_that_decides_nothing_about_presence_is_read_and_says_so() -> None:
    assert not third(of_size(3), eps=1).survey.presence_is_decided
    assert third(of_size(3), eps=1, publish_from=0).survey.presence_is_decided
    assert third(of_size(3), **NOISE).survey.presence_is_decided
    assert scheme_with(of_size(3), eps=1).survey.presence_is_decided, "version 2 has a minimum"
    error = undecided("test", 27)
    assert "'test'" in error.message
    assert "presence_epsilon: 1 " in error.hint and "± 27 devices" in error.hint
    assert "publish_from: 20 " in error.hint and "NOT protected" in error.hint
    assert "±" not in undecided("test").hint


VECTORS = json.loads(FILE.read_text())["signed"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_pins_and_signatures_are_what_devices_compare(vector: dict[str, Any]) -> None:
    """Computed here from the bytes of the terms alone, as a device does."""
    terms = vector["terms"].encode()
    digest, resolved = sha256(terms).hexdigest(), json.loads(terms)
    third_version = resolved["version"] == 3
    said = f"hearsay survey terms 3\n{resolved['declared']['id']}\n{digest}" if third_version else digest[:32]
    assert vector["fingerprint"] == digest[:32]
    assert vector["pins"] == ([digest] if third_version else [digest[:32], digest])
    author = Ed25519PublicKey.from_public_bytes(b64decode(vector["author"]))
    author.verify(b64decode(vector["signature"]), said.encode())
    with pytest.raises(InvalidSignature):
        author.verify(b64decode(vector["signature"]), (digest if third_version else said + "0").encode())


@pytest.mark.parametrize("value", [None, "x", "[]", "{}", "[1]", "[{}]", "[[]]", "[{a: b}]", "-1", "1.5", "yes"])
@pytest.mark.parametrize("key", [*keys.SINCE_3, "lookback", "minimum", "attributes", "id"])
def test_whatever_is_written_for_a_key_is_taken_or_refused_with_its_name(key: str, value: str | None) -> None:
    """And nothing else is raised."""
    terms = {"id": "s", "start": "2026-01-01T00:00:00Z", "period": "1d", "eps": "1", "presence_epsilon": "1"}
    attributes = "[{name: a, values: [b, c]}]"
    texts = {**terms, "attributes": attributes, key: "" if value is None else value}
    try:
        parse_survey("\n".join(f"{name}: {text}" for name, text in texts.items()), version=3)
    except SurveyError as error:
        assert key.removesuffix("s") in error.message, error.message


def test_an_audit_of_other_budgets_asks_the_same_survey() -> None:
    survey = third(of_size(3), eps=1, lookback=7, publish_from=20).survey
    found = budgets(survey, "2")["2"]
    assert found == survey.model_copy(update={"eps": 2.0})
