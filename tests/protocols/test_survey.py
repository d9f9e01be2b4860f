"""Every rule of a survey is checked at load, and the error names the key, the value and the fix."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.errors import SurveyError
from protocols.survey import Survey, parse_duration
from protocols.survey.names import format_duration
from protocols.survey_text import parse_survey

GOOD: dict[str, Any] = {
    "id": "buttons",
    "start": "2026-01-01T00:00:00Z",
    "period": "1d",
    "eps_inf": 2,
    "eps_1": 1,
    "attributes": [
        {"name": "colour", "values": ["red", "green", "blue"]},
        {"name": "count", "range": {"last": 29, "step": 10}},
    ],
}
PRIORS = [
    {"name": "colour", "values": ["red", "green"], "prior": {"red": 0.5, "green": 0.5}},
    {"name": "size", "values": ["S", "M"], "prior": {"S": 0.9, "M": 0.1}},
]


def load(change: dict[str, Any]) -> Survey:
    data = {key: value for key, value in (GOOD | change).items() if value != "LEFT OUT"}
    return parse_survey(json.dumps(data, indent=1), "survey.yaml")


def colour(**change: Any) -> dict[str, Any]:
    return {"attributes": [GOOD["attributes"][0] | change, GOOD["attributes"][1]]}


def count(**span: Any) -> dict[str, Any]:
    return {"attributes": [GOOD["attributes"][0], {"name": "count", "range": {"last": 29} | span}]}


def prior(**shares: float) -> dict[str, Any]:
    return {"solution": "rs+rfd", "attributes": [PRIORS[0] | {"prior": shares}, PRIORS[1]]}


# What is wrong, and what the error must say: the key, the value, the fix.
RULES: list[tuple[dict[str, Any], list[str]]] = [
    ({"id": "Buttons"}, ["id = Buttons", "lower-case"]),
    ({"id": "x" * 129}, ["id", "lower-case"]),
    ({"id": "LEFT OUT"}, ["id: missing", "lower-case"]),
    ({"eps_infinity": 2}, ["eps_infinity", "did you mean eps_inf?"]),
    ({"colour": 2}, ["line", "colour: unknown key", "there are id, title"]),
    ({"start": "2026-01-01"}, ["start = 2026-01-01", "time zone", "2026-01-01T00:00:00Z"]),
    ({"start": "2026-01-01T00:00:00"}, ["start", "time zone"]),
    ({"start": "1767225600"}, ["start = 1767225600", "time zone"]),
    ({"start": "2026-02-30T00:00:00Z"}, ["start", "day"]),
    ({"start": "2200-01-01T00:00:00Z"}, ["start: 2200", "1970 to 2199"]),
    ({"period": "0s"}, ["period: 0s", "1s to 366d"]),
    ({"period": "53w"}, ["period: 53w", "366d"]),
    ({"period": "1 day"}, ["period = 1 day", "15m or 1d"]),
    ({"period": "999999999999w"}, ["period", "15m or 1d"]),
    ({"period": "999999999w"}, ["period = 999999999w", "write less"]),
    ({"period": "-1d"}, ["period = -1d"]),
    ({"period": "١d"}, ["period = ١d"]),
    ({"period": 3600}, ["period = 3600", "s, m, h, d or w"]),
    ({"grace": "1001d"}, ["grace: 143w", "1000 periods", "choose less"]),
    ({"eps_inf": 0}, ["eps_inf = 0", "0.001 to 20"]),
    ({"eps_inf": 1e-9}, ["eps_inf", "0.001 to 20"]),
    ({"eps_inf": 21}, ["eps_inf: 21", "0.001 to 20"]),
    ({"eps_inf": 41, "solution": "spl"}, ["eps_inf: 41", "0.001 to 40"]),
    ({"eps_inf": "LEFT OUT", "eps_1": "LEFT OUT", "eps": 1e9}, ["eps: 1e+09", "0.001 to 20"]),
    ({"presence_epsilon": 21}, ["presence_epsilon = 21", "less than or equal to 20"]),
    ({"eps_inf": "nan"}, ["eps_inf = nan", "finite"]),
    ({"eps_inf": "inf"}, ["eps_inf = inf", "finite"]),
    ({"eps_inf": "two"}, ["eps_inf = two", "number"]),
    ({"eps_inf": "1_5", "eps_1": "0.5"}, ["eps_inf = 1_5", "a _ in a number"]),
    ({"eps_1": 2}, ["eps_1: 2", "below eps_inf = 2", "leave it out"]),
    ({"eps_1": 1.9999}, ["eps_1: 1.9999", "0.001 or more"]),
    ({"eps": 1}, ["budgets", "one of both"]),
    ({"eps_inf": "LEFT OUT", "eps_1": "LEFT OUT"}, ["budgets", "eps_inf", "eps for one-shot"]),
    ({"eps_inf": "LEFT OUT", "eps": 2}, ["eps_1: 1", "only eps"]),
    ({"eps_inf": "LEFT OUT", "eps_1": "LEFT OUT", "eps": 2, "memo_cap": 3}, ["memo_cap: 3", "leave it out"]),
    ({"memo_cap": 0}, ["memo_cap = 0", "greater than or equal to 1"]),
    ({"horizon": 0}, ["horizon = 0", "greater than or equal to 1"]),
    ({"horizon": 65_536}, ["horizon = 65536"]),
    ({"horizon": 60_000, **count(last=99)}, ["horizon: 60000", "counters", "shorter horizon"]),
    ({"horizon": 1.5}, ["horizon = 1.5", "whole number"]),
    ({"minimum": -1}, ["minimum = -1"]),
    ({"presence_epsilon": -1}, ["presence_epsilon = -1", "not private"]),
    ({"solution": "SMP"}, ["solution = SMP", "'smp', 'spl', 'rs+fd' or 'rs+rfd'"]),
    ({"guarantee": "attribute"}, ["guarantee: attribute", "leave it out"]),
    ({"clock": "sun"}, ["clock = sun", "'wall' or 'source'"]),
    ({"calibration": "none"}, ["calibration = none"]),
    ({"title": "a\x07b"}, ["title", "U+0007", "leave it out"]),
    ({"attributes": []}, ["attributes", "at least 1"]),
    ({"attributes": "colour"}, ["attributes = colour"]),
    ({"attributes": [None]}, ["attributes.0: should be keys and values"]),
    ({"attributes": {"colour": ["red"]}}, ["attributes: should be a list"]),
    (colour(values="red"), ["values = red: should be a list"]),
    (colour(groups=["warm"]), ["groups: should be keys and values"]),
    ({"attributes": [GOOD["attributes"][0]] * 2}, ["attributes", "'colour' twice", "its own name"]),
    ({"solution": "rs+fd", "attributes": GOOD["attributes"][:1]}, ["solution: rs+fd", "use smp"]),
    ({"solution": "rs+rfd"}, ["'colour'", "prior", "give one"]),
    ({"attributes": PRIORS}, ["'colour'", "only rs+rfd uses a prior", "leave it out"]),
    (prior(red=0.5, green=0.4), ["'colour'", "sums to 0.9", "sum to 1"]),
    (prior(red=1 - 1e-9, green=1e-9), ["prior.green", "1e-09"]),
    (prior(red=1.0, green=0.0), ["prior.red", "prior.green = 0.0"]),
    (prior(red=0.5, green=float("nan")), ["prior.green", "finite"]),
    (prior(red=1.0 - 1e-6), ["'colour'", "'green'", "every value one share"]),
    (prior(red=0.5, green=0.25, blue=0.25), ["'colour'", "'blue'", "every value one share"]),
    (colour(name="Colour"), ["name = Colour", "lower-case"]),
    (colour(name="token"), ["'token' and 'gap'", "choose another name"]),
    (colour(values=["red"]), ["'colour' has 1 value", "at least 2"]),
    (colour(values=["red", "red"]), ["'colour' lists 'red' twice", "once"]),
    (colour(values=["\u00e9", "e\u0301"]), ["'é' twice"]),
    (colour(values=["red", ""]), ["values.1", "0 characters", "1 to 200"]),
    (colour(values=["red", " blue"]), ["values.1 =  blue", "space around"]),
    (colour(values=["red", "a\nb"]), ["values.1", "U+000A"]),
    (colour(values=["red", "a\u2029b"]), ["values.1", "U+2029"]),
    (colour(values=["red", None]), ["values.1", "quotes"]),
    (colour(values=["red", ["blue"]]), ["values.1", "string"]),
    (colour(values={"red": 1}), ["values"]),
    (colour(range={"last": 3}), ["'colour'", "both values and a range", "keep one"]),
    (colour(groups={"warm": ["red", "pink"]}), ["group 'warm'", "'pink'", "not among the values"]),
    (colour(groups={"warm": []}), ["group 'warm'", "empty"]),
    (colour(groups={"warm": ["red", "red"]}), ["group 'warm'", "'red' twice"]),
    (colour(mechanism="magic"), ["attributes.colour.mechanism = magic", "one of auto, adp", "l-grr"]),
    (colour(mechanism="grr"), ["'colour'", "'grr'", "l-grr"]),
    (colour(mechanism="l-geometric"), ["'colour'", "l-geometric needs an order", "declare a range"]),
    (colour(parameter=3), ["'colour'", "auto takes no parameter", "leave it out"]),
    (colour(mechanism="loloha", parameter=4), ["g = 4", "possible here: 2, 3, 5"]),
    ({"eps_1": 1.9, **colour(mechanism="l-oue")}, ["l-oue", "eps_1 = 1.9", "below 1.6"]),
    (count(last=-1), ["count.range", "last: -1 is below first = 0", "swap"]),
    (count(last=0), ["'count' has 1 value", "at least 2"]),
    (count(last="many"), ["count.range.last = many", "whole number"]),
    (count(last=10**12), ["last: 1000000000000", "larger step"]),
    (count(step=0), ["count.range.step = 0"]),
    (count(upto=3), ["count.range.upto", "there are first, last, step"]),
    ({"attributes": [{"name": "n", "range": {"last": 1024}, "mechanism": "l-geometric"}]}, ["'n'", "1,024", "step"]),
    ({"attributes": [{"name": "n", "range": {"last": 255}, "mechanism": "loloha"}]}, ["'n'", "at most 255", "not 256"]),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), RULES, ids=[" ".join(words)[:60] for _, words in RULES])
def test_what_is_wrong_is_refused_by_key_value_and_fix(change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SurveyError) as error:
        load(change)
    assert str(error.value).startswith("survey.yaml: ")
    assert [word for word in words if word not in str(error.value)] == [], str(error.value)


def test_all_problems_are_told_at_once_with_their_lines() -> None:
    with pytest.raises(SurveyError) as error:
        parse_survey("id: Buttons\nperiod: 1y\nclock: sun\n", "s.yaml")
    lines = error.value.message.splitlines()
    assert [line[:7] for line in lines] == ["s.yaml:", "start: ", "line 2:", "line 3:", "attribu"]


def test_an_attribute_with_a_problem_is_not_said_to_be_missing() -> None:
    with pytest.raises(SurveyError) as error:
        load({"attributes": [GOOD["attributes"][0] | {"mechanism": "magic"}]})
    assert len(error.value.message.splitlines()) == 1


def test_names_of_values_are_what_is_written() -> None:
    survey = parse_survey(
        "{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, "
        "attributes: [{name: a, values: [yes, no, on, 1, 1.0, 010, 12:30, 2026-01-01, 'null', 0x1F, 1_000]}]}"
    )
    written = ("yes", "no", "on", "1", "1.0", "010", "12:30", "2026-01-01", "null", "0x1F", "1_000")
    assert survey.attributes[0].values == written


def test_a_boolean_from_a_program_is_no_name() -> None:
    with pytest.raises(ValueError, match="True is not a name; put the name in quotes"):
        Survey.model_validate(GOOD | {"attributes": [{"name": "a", "values": [True, False]}]})


def test_groups_may_overlap() -> None:
    groups = {"warm": ["red"], "screen": ["red", "green"]}
    assert load(colour(groups=groups)).attributes[0].groups == {"warm": ("red",), "screen": ("red", "green")}


def test_a_range_is_cut_into_steps() -> None:
    assert load(count(last=24, step=10)).attributes[1].values == ("0-9", "10-19", "20-24")
    assert load(count(first=-2, last=1)).attributes[1].values == ("-2", "-1", "0", "1")


def test_periods_are_found_by_moment_and_back() -> None:
    survey = load({"period": "15m", "grace": "1h"})
    begin, end = survey.bounds(5)
    assert (begin, end) == (datetime(2026, 1, 1, 1, 15, tzinfo=UTC), datetime(2026, 1, 1, 1, 30, tzinfo=UTC))
    assert (survey.period_of(begin), survey.period_of(end), survey.period_of(survey.start - timedelta(1))) == (
        5,
        6,
        -96,
    )


def test_reports_of_a_week_without_workers_are_taken() -> None:
    assert load({"period": "1d", "grace": "1h", "clock": "wall"}).ahead == 9
    assert load({"period": "15m", "grace": "1h", "clock": "source"}).ahead == 6


def test_an_attribute_nobody_asked_for_is_an_error_that_lists_those_asked() -> None:
    with pytest.raises(SurveyError, match="it has colour, count"):
        load({}).attribute("size")


@given(st.integers(0, 10**8))
def test_durations_are_read_as_they_are_written(seconds: int) -> None:
    duration = timedelta(seconds=seconds)
    assert parse_duration(format_duration(duration)) == duration
