"""Surveys as text: back and forth without loss, and from any text a survey or an error that can be read."""

from __future__ import annotations

import json
import random
import re
from importlib.resources import files
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.errors import SurveyError
from protocols.survey import Survey
from protocols.survey_text import format_survey, parse_survey
from protocols.survey_text.parsing import MOST_PROBLEMS
from protocols.survey_text.plain_yaml import MAX_PARTS, MAX_TEXT, NotPlain, read_yaml
from tests.helpers.random_surveys import Data, surveys

EXAMPLES = {path.name: path.read_text("utf-8") for path in (files("protocols") / "survey_text" / "examples").iterdir()}


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


@settings(max_examples=40)
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


@given(st.text())
def test_any_text_is_a_survey_or_a_survey_error(text: str) -> None:
    judge(text)


def judge(text: str) -> None:
    """Nothing but SurveyError may come out, and it has something to say that can be printed."""
    try:
        parse_survey(text)
    except SurveyError as error:
        assert error.message.encode("utf-8", "backslashreplace")
        assert len(error.message) < 20_000


HOSTILE = {
    "nothing": ("", "expected keys and values"),
    "a list": ("[]", "expected keys and values"),
    "a word": ("hello", "expected keys and values"),
    "a key twice": ("id: a\nid: b", "line 2: 'id' is there twice"),
    "an anchor": ("id: &a s\ntitle: *a", "an anchor is used again"),
    "an endless list": ("id: &a [*a]", "an anchor is used again"),
    "a tag": ("id: !secret s", "the tag !secret is not supported"),
    "a tag on a key": ("id: s\n!secret title: s", "line 2: the tag !secret is not supported"),
    "python": ("id: !!python/object/apply:os.getcwd []", "id"),
    "a key that is a list": ("[a, b]: c", "a key that is not one word"),
    "two documents": ("id: a\n---\nid: b", "line 2: not YAML"),
    "broken": ("id: [a", "not YAML"),
    "a tab": ("id:\n\t- a", "line 2: not YAML"),
    "a zero byte": ("id: \0", "not YAML"),
    "no character": ('id: "\\UFFFFFFFF"', "not YAML"),
    "deep": ("[" * 5000, "not YAML"),
    "deep below one another": ("- " * 5000, "nested too deeply"),
    "many values": ("id: [" + "a," * MAX_PARTS + "]", f"more than {MAX_PARTS} lines and values"),
    "many lines": ("#\n" * (MAX_PARTS + 1), f"more than {MAX_PARTS} lines and values"),
    "many keys in one line": ("{a: " * 30 + "[" + "[] " * MAX_PARTS, "not YAML"),
    "many laughs": ("a: &a [b,b]\nb: &b [*a,*a]\nc: [*b,*b]", "line 2: an anchor is used again"),
    "long": ("#" * (MAX_TEXT + 1), "characters"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_plain_yaml_is_refused(name: str) -> None:
    text, word = HOSTILE[name]
    with pytest.raises(SurveyError) as error:
        parse_survey(text, "s.yaml")
    assert word in error.value.message


def test_plain_yaml_knows_its_lines() -> None:
    document = read_yaml("a:\n  - b: 1\n    c:\n      - 2\n\n      - 3\n")
    assert document.data == {"a": [{"b": "1", "c": ["2", "3"]}]}
    assert [document.line(path) for path in (("a",), ("a", 0, "c"), ("a", 0, "c", 1), ("a", 7), ("x",))] == [
        1,
        3,
        6,
        1,
        None,
    ]


def test_plain_yaml_raises_one_kind_of_error() -> None:
    with pytest.raises(NotPlain, match="line 1: not YAML"):
        read_yaml("a: 'b")


def test_of_very_many_problems_the_first_are_shown() -> None:
    many = ", ".join(f"k{number}: 1" for number in range(5000))
    with pytest.raises(SurveyError) as error:
        parse_survey(f"{{id: s, {many}}}")
    lines = error.value.message.splitlines()
    assert len(lines) == MOST_PROBLEMS + 1
    assert re.fullmatch(r"and [\d,]+ more", lines[-1])
