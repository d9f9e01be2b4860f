"""The survey model: attributes, values, budgets, periods, and the declared terms."""

from protocols.survey.attribute import MIN_SHARE, Attribute
from protocols.survey.durations import parse_duration
from protocols.survey.model import MAX_PERIOD, Solution, Survey
from protocols.survey.roles import dwell_times

__all__ = [
    "MAX_PERIOD",
    "MIN_SHARE",
    "Attribute",
    "Solution",
    "Survey",
    "dwell_times",
    "parse_duration",
]
