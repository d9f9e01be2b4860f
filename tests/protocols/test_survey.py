"""Every rule of a survey is checked at load, and the error names the key, the value and the fix."""

import json
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.errors import SurveyError
from protocols.survey import Survey, parse_duration
from protocols.survey.names import format_duration
from protocols.survey_text import parse_survey

REFUSED = json.loads((Path(__file__).parent / "refused.json").read_text())
"""By kind of survey: terms that are good, what makes them wrong, and what the error must say: key, value and fix."""
GOOD: dict[str, Any] = REFUSED["of two attributes"]["terms"]
PRIORS: dict[str, Any] = REFUSED["with priors"]["terms"]
ROWS = [(kind, change, words) for kind, case in REFUSED.items() for change, *words in case["refused"]]


def load(change: dict[str, Any], terms: dict[str, Any] = GOOD) -> Survey:
    """A survey in which some keys, named by their paths, have other values, or are left out."""
    data: Any = deepcopy(terms)
    for path, value in deepcopy(change).items():
        *way, last = (int(part) if part.isdigit() else part for part in path.split("."))
        where = reduce(lambda inside, part: inside[part], way, data)
        where[last] = value
        if value == "LEFT OUT":
            del where[last]
    return parse_survey(json.dumps(data, indent=1), "survey.yaml")


@pytest.mark.parametrize(("kind", "change", "words"), ROWS, ids=[" ".join(words)[:60] for _, _, words in ROWS])
def test_what_is_wrong_is_refused_by_key_value_and_fix(kind: str, change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SurveyError) as error:
        load(change, REFUSED[kind]["terms"])
    said = f"{error.value} {error.value.hint}"
    assert said.startswith("survey.yaml: ")
    assert [word for word in words if word not in said] == [], said


def test_all_problems_are_told_at_once_with_their_lines() -> None:
    with pytest.raises(SurveyError) as error:
        parse_survey("id: Buttons\nperiod: 1y\nclock: sun\n", "s.yaml")
    lines = error.value.message.splitlines()
    assert [line[:7] for line in lines] == ["s.yaml:", "start: ", "line 2:", "line 3:", "attribu"]


def test_an_attribute_with_a_problem_is_not_said_to_be_missing() -> None:
    with pytest.raises(SurveyError) as error:
        load({"attributes.0.mechanism": "magic"})
    assert len(error.value.message.splitlines()) == 1


def test_names_groups_and_ranges_are_what_is_written() -> None:
    written = ("yes", "no", "on", "1", "1.0", "010", "12:30", "2026-01-01", "'null'", "0x1F", "1_000")
    survey = parse_survey(
        "{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: "
        f"[{{name: a, values: [{', '.join(written)}]}}]}}"
    )
    assert survey.attributes[0].values == tuple(name.strip("'") for name in written)
    groups = {"warm": ["red"], "screen": ["red", "green"]}  # may overlap
    assert load({"attributes.0.groups": groups}).attributes[0].groups == {"warm": ("red",), "screen": ("red", "green")}
    assert load({"attributes.1.range": {"first": -2, "last": 1}}).attributes[1].values == ("-2", "-1", "0", "1")
    with pytest.raises(ValueError, match="True is not a name; put the name in quotes"):
        Survey.model_validate(GOOD | {"attributes": [{"name": "a", "values": [True, False]}]})


@pytest.mark.parametrize(
    ("role", "values"),
    [
        ("dwell", ["1", "2", "3-5"]),
        ("dwell", ["15m-30m", "30m-1h", "2h"]),
        ("dwell", ["10h", "10h-18h"]),
        ("transition", ["a>a", "a>b", "Le Mans > b"]),
        ("plain", ["soon", "a>b>c"]),
    ],
)
def test_values_of_roles_are_taken_as_documented(role: str, values: list[str]) -> None:
    asked = load({"attributes.0.role": role, "attributes.0.values": values}).attributes[0]
    assert asked.values == tuple(values)


def test_periods_are_found_by_moment_and_back_and_are_open_ahead() -> None:
    survey = load({"period": "15m", "grace": "1h"})
    begin, end = survey.bounds(5)
    assert (begin, end) == (datetime(2026, 1, 1, 1, 15, tzinfo=UTC), datetime(2026, 1, 1, 1, 30, tzinfo=UTC))
    assert [survey.period_of(at) for at in (begin, end, survey.start - timedelta(1))] == [5, 6, -96]
    assert load({"period": "1d", "grace": "1h", "clock": "wall"}).ahead == 9, "a week without workers"
    assert load({"period": "15m", "grace": "1h", "clock": "source"}).ahead == 6


@given(st.integers(0, 10**8))
def test_durations_are_read_as_they_are_written(seconds: int) -> None:
    duration = timedelta(seconds=seconds)
    assert parse_duration(format_duration(duration)) == duration
