"""How large the records of a survey can become, computed from its terms: what does not fit is not published.

Results are cut into pieces, so they always fit. A survey itself and a counter are one record each. The summary of dwell
times is made from a number for every two values of its attribute, in memory.
"""

from __future__ import annotations

from math import isqrt

from protocols.errors import SurveyError
from protocols.survey import Survey
from stream_app.log.limits import VALUE_BYTES

HEAD_BYTES = 2048
"""More than the head of a counter takes, without its attributes."""
ATTRIBUTE_BYTES = 128
"""More than a counter's head takes for an attribute, without its name."""

LATE_BYTES = 32
"""More than a counter's head takes for the late rows of a period."""


DWELL_BYTES = 64 * 1024 * 1024
"""The largest table for dwell times; several of that size are needed at once."""

MOST_FORECASTS = 2000
"""Series of one survey. Fitting one may take half a second, and finals wait for no forecast, but the next one does."""


def survey_bytes(survey: Survey) -> int:
    """The size of the survey in the registry."""
    return len(survey.model_dump_json().encode())


def counter_bytes(survey: Survey) -> int:
    """The size of the counts of one partition and period, if every gap occurs: as state record or as partial."""
    return _head_bytes(survey) + survey.horizon * _gap_bytes(survey)


def check_sizes(survey: Survey, limit: int = VALUE_BYTES) -> None:
    """Refuse a survey whose records, or whose tables for dwell times, can become too large."""
    for attribute in survey.asked:
        taken = 8 * attribute.k**2
        if attribute.role == "dwell" and taken > DWELL_BYTES:
            raise SurveyError(
                f"survey {survey.id!r}, attribute {attribute.name!r}: its dwell times take {taken:,} bytes, "
                f"8 for every two values; at most {DWELL_BYTES:,}",
                f"use at most {isqrt(DWELL_BYTES // 8):,} values (in a range a larger step), or `role: plain`",
            )
    series = 1 + sum(attribute.k + len(attribute.groups) for attribute in survey.asked)
    if survey.forecast is not None and series > MOST_FORECASTS:
        raise SurveyError(
            f"survey {survey.id!r}: it asks for forecasts of {series:,} values and groups; at most {MOST_FORECASTS:,}",
            "leave out `forecast`, and use `hearsay forecast --value` for those you look at",
        )
    if survey_bytes(survey) > limit:
        raise SurveyError(
            f"survey {survey.id!r}: it takes {survey_bytes(survey):,} bytes, and a record at most {limit:,}",
            "use shorter names of values, or fewer values",
        )
    if counter_bytes(survey) > limit:
        horizon = (limit - _head_bytes(survey)) // _gap_bytes(survey)
        values, each = sum(attribute.k for attribute in survey.asked), 8 * (survey.horizon + 1)
        fewer = values - -(-(counter_bytes(survey) - limit) // each)
        raise SurveyError(
            f"survey {survey.id!r}: its counters take up to {counter_bytes(survey):,} bytes, 8 for each value and gap, "
            f"and a record at most {limit:,}",
            f"use a horizon of at most {horizon}, or at most {fewer:,} values in all"
            if horizon > 0
            else f"use at most {fewer:,} values in all",
        )


def _head_bytes(survey: Survey) -> int:
    """What does not grow with the horizon: of each attribute its name, and its reports by width."""
    return HEAD_BYTES + sum(ATTRIBUTE_BYTES + len(asked.name) + 8 * (asked.k + 1) for asked in survey.asked)


def _gap_bytes(survey: Survey) -> int:
    """For each attribute: the gap, its reports, and the supports of each value; and for presence-only reports.

    And the late rows of a period.
    """
    return LATE_BYTES + sum(
        2 + 8 + 8 * k for k in [*(attribute.k for attribute in survey.asked), *[0] * (survey.one_in > 1)]
    )
