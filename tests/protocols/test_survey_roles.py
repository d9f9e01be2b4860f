"""Values of dwell times and transitions are written as documented, or the survey is refused with the correction."""

import pytest

from protocols.survey import Survey, dwell_times
from protocols.survey_text import parse_survey, reference

TERMS = """id: s
start: 2026-01-01T00:00:00Z
period: 1d
eps: 1
attributes:
  - {name: plain, values: [a, b]}
"""


def survey(role: str, values: list[str]) -> Survey:
    return parse_survey(f"{TERMS}  - {{name: asked, role: {role}, values: {values!r}}}\n", "survey.yaml")


@pytest.mark.parametrize(
    ("role", "values"),
    [
        ("dwell", ["1", "2", "3-5"]),
        ("dwell", ["15m-30m", "30m-1h", "2h"]),
        ("dwell", ["10h", "10h-18h"]),
        ("dwell", ["0-9", "10-19"]),
        ("transition", ["a>a", "a>b", "Le Mans > b"]),
        ("plain", ["soon", "a>b>c"]),
        ("area", ["3h-5h", ">"]),
    ],
)
def test_values_as_documented_are_taken(role: str, values: list[str]) -> None:
    assert survey(role, values).attributes[1].values == tuple(values)


def test_durations_are_hours() -> None:
    assert dwell_times(["30m", "1h-3h", "1d"]) == ([(0.5, 0.5), (1, 3), (24, 24)], "hours")


def test_the_reference_shows_how_values_of_each_role_are_written() -> None:
    for example in ("`3h-5h`", "`2h`", "`north>south`"):
        assert example in reference()
