"""How large the records of a survey can become, computed from its terms: what does not fit is not published.

Results are cut into pieces, so they always fit. A survey itself, a counter and a final are one record each. The summary
of dwell times is made from a number for every two values of its attribute, in memory.
"""

from math import isqrt

from protocols.errors import SurveyError
from protocols.mechanisms import MAX_VALUES
from protocols.scheme import Scheme
from protocols.survey import Attribute, Survey
from protocols.wire import MAX_TERMS_BYTES
from stream_app.counting.gathered import ALWAYS_WAITING, SUPPORT_BYTES
from stream_app.log.codec import VALUE_BYTES

HEAD_BYTES = 2048
"""More than the head of a counter takes, without its attributes."""
ATTRIBUTE_BYTES = 128
"""More than a counter's head takes for an attribute, without its name."""

GUARANTEES_BYTES = 32 * 1024
"""More than a final takes for its guarantees and for the columns of its batch."""

LATE_BYTES = 32
"""More than a counter's head takes for the late rows of a period."""


MOST_ANSWERED = 5
"""Of how many open windows answers are added up where devices are counted by gaps: hour, day, week, since the start."""

DWELL_BYTES = 64 * 1024 * 1024
"""The largest table for dwell times; several of that size are needed at once."""

LARGE_SURVEY = 1024 * 1024
"""The terms of a smaller survey are not looked at: they are written about as long as it is."""

MOST_SERIES = 2000
"""Of one survey. Fitting one may take half a second, and finals wait for no forecast, but the next one does."""


def survey_bytes(survey: Survey) -> int:
    """The size of the survey in the registry."""
    return len(survey.model_dump_json().encode())


def counter_bytes(survey: Survey) -> int:
    """The size of the counts of one partition and period, if every gap occurs: as state record or as partial."""
    rows, reach = len(survey.visits.cells), survey.visits.reach
    by_gap = rows * _gap_bytes(survey)
    if not survey.counts_supports_by_visit:
        by_gap = rows * _visit_bytes(survey) + _support_bytes(survey)
    return _head_bytes(survey) + by_gap + max(0, reach - rows) * LATE_BYTES


def final_bytes(survey: Survey) -> int:
    """The size of a final, if every gap occurs and every number takes eight bytes."""
    windows = len(survey.units) if survey.visitors is not None else MOST_ANSWERED
    if survey.visitors is None and not survey.releases_windows:
        windows = 0
    sums = 2 * windows * _gap_bytes(survey)  # also in the record of the merge
    return counter_bytes(survey) + GUARANTEES_BYTES + sums


def check_sizes(survey: Survey, limit: int = VALUE_BYTES) -> None:
    """Refuse a survey whose records, or whose tables for dwell times and amounts, can become too large."""
    for attribute in survey.asked:
        taken = 8 * attribute.k**2
        if attribute.role in ("dwell", "amount") and taken > DWELL_BYTES:
            raise SurveyError(
                f"survey {survey.id!r}, attribute {attribute.name!r}: its role {attribute.role} takes {taken:,} bytes, "
                f"8 for every two values; at most {DWELL_BYTES:,}",
                f"use at most {isqrt(DWELL_BYTES // 8):,} values (in a range a larger step), or `role: plain`",
            )
    series = 1 + sum(attribute.k + len(attribute.groups) for attribute in survey.asked)
    for key, asked in (("forecast", series if survey.forecast else 0), ("nowcast", survey.nowcasts)):
        if asked > MOST_SERIES:
            raise SurveyError(
                f"survey {survey.id!r}: it asks for {key}s of {asked:,} values and groups; at most {MOST_SERIES:,}",
                f"leave out `{key}`; `hearsay forecast --value` shows what is to come of those you look at",
            )
    if survey_bytes(survey) > limit:
        raise SurveyError(
            f"survey {survey.id!r}: it takes {survey_bytes(survey):,} bytes, and a record at most {limit:,}",
            "use shorter names of values, or fewer values",
        )
    if survey_bytes(survey) > LARGE_SURVEY and (taken := len(Scheme(survey).terms)) > MAX_TERMS_BYTES:
        raise SurveyError(
            f"survey {survey.id!r}: its terms take {taken:,} bytes, and devices read at most {MAX_TERMS_BYTES:,}",
            "use shorter names of values, fewer values, or a range",
        )
    if final_bytes(survey) > limit:
        horizon = (limit - GUARANTEES_BYTES - _head_bytes(survey)) // _gap_bytes(survey)
        values, rows = sum(attribute.k for attribute in survey.asked), len(survey.visits.cells) + 1
        by_visit = survey.counts_supports_by_visit
        each = 8 * (rows if by_visit else 2 + 2 * MOST_ANSWERED)
        fewer = values - -(-(final_bytes(survey) - limit) // each)
        raise SurveyError(
            f"survey {survey.id!r}: its finals take up to {final_bytes(survey):,} bytes, 8 for each value and gap, "
            f"and a record at most {limit:,}",
            f"use a {survey.key('horizon')} of at most {horizon}, or at most {fewer:,} values in all"
            if by_visit and horizon > 0 and survey.visitors is None
            else f"use at most {fewer:,} values in all",
        )


def _head_bytes(survey: Survey) -> int:
    """What does not grow with the horizon: of each attribute its name, and its reports by width."""
    return HEAD_BYTES + sum(
        ATTRIBUTE_BYTES + len(asked.name) + (_more_waiting(asked, survey) if _gathers(asked) else 8 * (asked.k + 1))
        for asked in survey.asked
    )


def _more_waiting(attribute: Attribute, survey: Survey) -> int:
    """Of gathered answers: what may wait beyond the half of `_gap_bytes`."""
    return max(0, ALWAYS_WAITING - SUPPORT_BYTES * attribute.k * len(survey.visits.cells))


def _gap_bytes(survey: Survey) -> int:
    """For each attribute: the gap, its reports, and the supports of each value; and for presence-only reports.

    Of answers that are gathered, half of that for supports, half for those that wait, and how many they are. And the
    late rows of a period.
    """
    return _visit_bytes(survey) + _support_bytes(survey)


def _visit_bytes(survey: Survey) -> int:
    """What a gap takes without supports."""
    return LATE_BYTES + (2 + 8) * (len(survey.asked) + (survey.one_in > 1))


def _support_bytes(survey: Survey) -> int:
    """What one row of supports takes."""
    return sum(8 * (attribute.k + _gathers(attribute)) for attribute in survey.asked)


def _gathers(attribute: Attribute) -> bool:
    """Whether answers are gathered (`stream_app.counting.gathered`): nothing else takes so many values."""
    return attribute.mechanism == "olh" or attribute.k > MAX_VALUES
