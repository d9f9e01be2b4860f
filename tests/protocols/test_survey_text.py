"""Surveys as text: back and forth without loss, a survey or an error from any text, and what editors are told."""

import json
import random
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from producers.scenarios import scenario
from protocols.errors import SurveyError
from protocols.mechanisms import CHOOSERS, NAMES, RECORDS
from protocols.scheme import Scheme
from protocols.survey import Attribute, Cross, Rolling, Survey, version_of_new_texts
from protocols.survey.attribute import Span
from protocols.survey.grid import Grid, Reach
from protocols.survey_text import format_survey, json_schema, keys_of, parse_survey, reference
from protocols.survey_text.parsing import MOST_PROBLEMS
from protocols.survey_text.plain_yaml import MAX_PARTS, MAX_TEXT
from protocols.survey_text.reference import fits

Data = dict[str, Any]
budgets = st.floats(0.01, 10).map(lambda eps: round(eps, 3))
words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=20)
guessed = st.sampled_from(["yes", "no", "null", "~", "12:30", "010", "1.0", "-", "a: b", "#x", "{}", "''", "NaN"])
names = guessed | words.map(lambda word: f"é{word}x")  # never empty, no space around it
value_lists = st.lists(names, min_size=2, max_size=9, unique=True)
keys = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda key: key not in ("token", "gap"))
durations = st.sampled_from(["1s", "15m", "24h", "1d", "7d", "1w", "90s"])
privacy = st.one_of(
    st.fixed_dictionaries({"eps": budgets}),
    st.fixed_dictionaries({"eps_inf": budgets, "memo_cap": st.integers(1, 9)}),
    st.builds(lambda eps, more: {"eps_inf": round(eps + more, 3), "eps_1": eps}, budgets, budgets),
)


@st.composite
def attributes(draw: st.DrawFn, name: str, *, prior: bool) -> Data:
    if not prior and draw(st.booleans()):
        return {
            "name": name,
            "range": {"first": draw(st.integers(-50, 50)), "last": 60, "step": draw(st.integers(1, 9))},
        }
    values = draw(value_lists)
    shares = {"prior": dict.fromkeys(values, 1 / len(values))} if prior else {}
    return {"name": name, "values": values, "groups": {draw(names): values[:2], draw(names): values[1:]}, **shares}


@st.composite
def surveys(draw: st.DrawFn) -> Data:
    solution = draw(st.sampled_from(["smp", "spl", "rs+fd", "rs+rfd"]))
    few = 2 if solution.startswith("rs") else 1
    chosen = draw(st.lists(keys, min_size=few, max_size=3, unique=True))
    return {
        "id": draw(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,9}", fullmatch=True)),
        "title": draw(words),
        "start": draw(st.sampled_from(["2026-01-01T00:00:00Z", "1999-12-31T23:59:00+05:30"])),
        "period": draw(durations),
        "solution": solution,
        "horizon": draw(st.integers(1, 40)),
        "clock": draw(st.sampled_from(["wall", "source"])),
        "attributes": [draw(attributes(name, prior=solution == "rs+rfd")) for name in chosen],
        **draw(privacy),
    }


EXAMPLES = {path.name: path.read_text("utf-8") for path in (files("protocols") / "survey_text" / "examples").iterdir()}


@settings(max_examples=25)
@given(surveys())
def test_a_survey_written_out_is_read_back_as_it_was(data: Data) -> None:
    survey = Survey.model_validate(data)
    for text in (format_survey(survey), survey.model_dump_json(), yaml.safe_dump(json.loads(json.dumps(data)))):
        again = parse_survey(text)
        assert (again, again.declared_terms) == (survey, survey.declared_terms)


junk = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just([]) | st.just({})


def places(data: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in nested data."""
    inside = list(data.items()) if isinstance(data, dict) else list(enumerate(data)) if isinstance(data, list) else []
    return [(data, key) for key, _ in inside] + [place for _, value in inside for place in places(value)]


@settings(max_examples=20)
@given(surveys(), st.data())
def test_a_survey_with_junk_in_any_place_is_a_survey_or_a_survey_error(data: Data, draw: st.DataObject) -> None:
    data = json.loads(json.dumps(data))
    for _ in range(draw.draw(st.integers(1, 3))):
        if places(data):
            container, key = draw.draw(st.sampled_from(places(data)))
            if isinstance(container, dict) and draw.draw(st.booleans()):
                container[draw.draw(st.text(max_size=9))] = container.pop(key)
            else:
                container[key] = draw.draw(junk)
    judge(json.dumps(data))


@pytest.mark.parametrize("name", EXAMPLES)
def test_mutated_texts_are_surveys_or_survey_errors(name: str) -> None:
    chance = random.Random(1)
    pieces = ["\n", "  ", ":", "- ", "[", "]", "{", "}", "'", '"', "&a ", "*a", "!!int ", "|", ">", "%", "\t", "\0",
              "\ud800", "\u2028", "9" * 5000, "1e999", "~", "? ", "\\U00110000", "\\UFFFFFFFF", "<<: "]  # fmt: skip
    lines = EXAMPLES[name].splitlines(keepends=True)
    text = "".join(line for line in lines if not line.lstrip().startswith("#"))
    for _ in range(60):
        mutated = text
        for _ in range(chance.choice([1, 1, 3])):
            place = chance.randrange(len(mutated))
            mutated = mutated[:place] + chance.choice(pieces) + mutated[place + chance.choice([0, 1, 5]) :]
        judge(mutated)


def judge(text: str) -> None:
    """Nothing but SurveyError may come out, and it has something to say that can be printed."""
    try:
        parse_survey(text)
    except SurveyError as error:
        assert error.message.encode("utf-8", "backslashreplace")
        assert len(error.message) < 20_000


HOSTILE: dict[str, tuple[str, str]] = {
    **json.loads((Path(__file__).parent / "hostile_texts.json").read_text()),
    "deep": ("[" * 5000, "not YAML"),
    "deep below one another": ("- " * 5000, "nested too deeply"),
    "many values": ("id: [" + "a," * MAX_PARTS + "]", f"more than {MAX_PARTS:,} lines and values"),
    "many lines": ("#\n" * (MAX_PARTS + 1), f"more than {MAX_PARTS:,} lines and values"),
    "many keys in one line": ("{a: " * 30 + "[" + "[] " * MAX_PARTS, "not YAML"),
    "long": ("#" * (MAX_TEXT + 1), "characters"),
}
"""Texts that are no plain YAML, and words of their refusals."""


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_plain_yaml_is_refused(name: str, version: int) -> None:
    text, word = HOSTILE[name]
    with pytest.raises(SurveyError) as error:
        parse_survey(text, "s.yaml", version=version)
    assert word in error.value.message


def test_a_list_that_is_too_long_is_not_called_a_fault_of_indentation() -> None:
    with pytest.raises(SurveyError, match="more than 75,000 lines and values") as error:
        parse_survey("attributes: [{name: a, values: [" + ", ".join(map(str, range(100_000))) + "]}]")
    assert "at most 65,536 values" in error.value.hint and "indentation" not in error.value.hint


def test_of_very_many_problems_the_first_are_shown() -> None:
    many = ", ".join(f"k{number}: 1" for number in range(5000))
    with pytest.raises(SurveyError) as error:
        parse_survey(f"{{id: s, {many}}}")
    lines = error.value.message.splitlines()
    assert len(lines) == MOST_PROBLEMS + 1
    assert re.fullmatch(r"and [\d,]+ more", lines[-1])


ATTRIBUTES = [{"name": "a", "values": ["x", "y", "z"]}, {"name": "b", "values": ["x", "y"]}]
PRIORS = [{**each, "prior": dict.fromkeys(each["values"], 1 / len(each["values"]))} for each in ATTRIBUTES]
FITS: dict[str, dict[str, Any]] = {
    "`eps`": {"eps": 1},
    "memo only": {"eps_inf": 2},
    "`eps_1`": {"eps_inf": 2, "eps_1": 0.5},
    "rs+fd": {"eps": 1, "solution": "rs+fd"},
    "rs+rfd": {"eps": 1, "solution": "rs+rfd", "attributes": PRIORS},
}


def test_the_reference_in_the_documents_is_the_one_the_model_gives() -> None:
    """Write it again with: hearsay survey schema --markdown > docs/survey-reference.md"""
    assert (Path(__file__).parents[2] / "docs" / "survey-reference.md").read_text("utf-8") == reference()


@pytest.mark.parametrize("version", [2, 3])
def test_every_key_and_every_mechanism_is_in_the_reference_and_in_the_json_schema(version: int) -> None:
    models = (Survey, Attribute, Cross, Span, Grid, Reach, *([Rolling] if version == 3 else []))
    text, fields = reference(version), [field for model in models for field in keys_of(model, version).items()]
    assert all(field.description for _, field in fields)
    assert [name for name in (*dict(fields), *NAMES) if f"| `{name}` |" not in text] == []
    schema = json.loads(json.dumps(json_schema(version)))
    assert schema["$defs"]["Attribute"]["properties"]["mechanism"]["enum"] == list(NAMES)
    assert list(schema["properties"]) == list(keys_of(Survey, version))
    assert list(schema["$defs"]["Attribute"]["properties"]) == list(keys_of(Attribute, version))
    assert schema["additionalProperties"] is False
    assert schema["properties"]["grace"]["default"] == "0s"


@pytest.mark.parametrize("context", FITS)
@pytest.mark.parametrize("mechanism", NAMES)
def test_what_the_reference_says_fits_is_what_compiles(mechanism: str, context: str) -> None:
    terms = {"id": "s", "start": "2026-01-01T00:00:00Z", "period": "1d", "attributes": ATTRIBUTES, **FITS[context]}
    first: dict[str, Any] = {**terms["attributes"][0], "mechanism": mechanism}
    if mechanism in RECORDS and RECORDS[mechanism].needs_grid:
        reaches = {"eps": "geo", "eps_inf": "geo_inf", "eps_1": "geo"}
        first = {"name": "a", "grid": {"crs": "own", "cell": 100, "columns": 3, "rows": 2}, "mechanism": mechanism}
        first |= {
            reaches[key]: {"level": 1 + (key == "eps_inf"), "radius": 100} for key in FITS[context] if key in reaches
        }
    if mechanism in RECORDS and RECORDS[mechanism].needs_order:
        first = {"name": "a", "range": {"last": 2}, "mechanism": mechanism}
        first |= {"prior": {"0": 0.25, "1": 0.25, "2": 0.5}} if context == "rs+rfd" else {}
    terms["attributes"] = [first, terms["attributes"][1]]
    try:
        Scheme(Survey.model_validate(terms))
        compiles = True
    except (SurveyError, ValidationError):
        compiles = False
    assert compiles == (mechanism in CHOOSERS or context in fits(RECORDS[mechanism]).split(", "))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_show_and_explain_every_key(name: str) -> None:
    """Each key is set, or shown as a comment with its default, and some comment stands above it."""
    lines = EXAMPLES[name].splitlines()
    for key in keys_of(Survey, version_of_new_texts()):
        number = next((n for n, line in enumerate(lines) if line.removeprefix("# ").startswith(f"{key}:")), None)
        assert number is not None, f"{key} is not shown"
        while not lines[number - 1].startswith("#"):
            number -= 1
            assert lines[number], f"{key} is not explained"


@pytest.mark.parametrize(
    ("example", "name"), [("mobility-week", "virtual-humans"), ("telemetry", "telemetry"), ("demand-year", "demand")]
)
def test_examples_fit_the_scenarios_they_are_for(example: str, name: str) -> None:
    survey = parse_survey(EXAMPLES[f"{example}.yaml"])
    truth = scenario(name, devices=500)
    assert {attribute.name: attribute.values for attribute in survey.attributes} == truth.attributes
