"""Values of dwell times and transitions are written as documented, or the survey is refused with the correction."""

import pytest

from protocols.errors import SurveyError
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


@pytest.mark.parametrize(
    ("role", "values", "complaint"),
    [
        ("dwell", ["short", "long"], "'short' is not a dwell time; write a whole number or a duration"),
        ("dwell", ["1h", "2"], "'2' and '1h': give all dwell times a unit, or none"),
        ("dwell", ["1h", "3h-5"], "'3h-5' and '1h': give all dwell times a unit, or none"),
        ("dwell", ["5h-3h", "9h"], "'5h-3h' ends before it begins; write 3h-5h"),
        ("dwell", ["2h", "1h"], "'1h' after '2h': list dwell times in ascending order"),
        ("dwell", ["1h-3h", "2h-4h"], "without overlaps"),
        ("dwell", ["60m", "1h"], "'1h' after '60m': list dwell times in ascending order"),
        ("dwell", ["1h", "12345678901h"], "'12345678901h': not a duration"),
        ("dwell", ["1h", "999999999w"], "longer than time is counted"),
        ("dwell", ["1h", "٣h"], "'٣h' is not a dwell time"),
        ("dwell", ["1h", "2h+"], "'2h+' is not a dwell time"),
        ("transition", ["a>b", "b"], "'b' is not a transition; write an origin, > and a destination"),
        ("transition", ["a>b", "a>b>c"], "'a>b>c' is not a transition"),
        ("transition", ["a>b", "a>"], "'a>' is not a transition"),
        ("transition", ["a>b", "a -> b"], "'a -> b' is not a transition"),
        ("transition", ["a>b", "a > b"], "'a > b' is the transition a>b again"),
    ],
)
def test_other_values_are_refused_with_their_line_and_a_correction(
    role: str, values: list[str], complaint: str
) -> None:
    with pytest.raises(SurveyError) as refused:
        survey(role, values)
    assert f"line 7: attribute 'asked', role {role}: " in str(refused.value)
    assert complaint in str(refused.value)


def test_a_negative_range_is_no_dwell_time() -> None:
    with pytest.raises(SurveyError, match="'-2' is not a dwell time"):
        parse_survey(f"{TERMS}  - {{name: asked, role: dwell, range: {{first: -2, last: 2}}}}\n")


def test_durations_are_hours() -> None:
    assert dwell_times(["30m", "1h-3h", "1d"]) == ([(0.5, 0.5), (1, 3), (24, 24)], "hours")


def test_the_reference_shows_how_values_of_each_role_are_written() -> None:
    for example in ("`3h-5h`", "`2h`", "`north>south`"):
        assert example in reference()
