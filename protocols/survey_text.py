"""Surveys from text, with errors that name the key, the value and the fix."""

from __future__ import annotations

import yaml
from pydantic import ValidationError

from protocols.errors import SurveyError
from protocols.scheme import Scheme
from protocols.survey import Survey


def parse_survey(text: str, source: str = "survey") -> Survey:
    """A survey from YAML (or JSON) text.

    >>> survey = parse_survey('''
    ... id: buttons
    ... start: 2026-01-01T00:00:00Z
    ... period: 1d
    ... eps_inf: 2
    ... eps_1: 1
    ... attributes:
    ...   - {name: colour, values: [red, green, blue]}
    ... ''')
    >>> survey.attributes[0].k, survey.longitudinal
    (3, True)
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SurveyError(f"{source}: not YAML: {error}", "check indentation and quotes") from None
    if not isinstance(data, dict):
        raise SurveyError(f"{source}: expected a mapping of keys", "see the annotated examples")
    try:
        survey = Survey.model_validate(data)
    except ValidationError as error:
        raise SurveyError(f"{source}: {_explain(error)}", "every key is explained in the annotated examples") from None
    Scheme(survey)  # what mechanisms cannot do is found by compiling
    return survey


def _explain(error: ValidationError) -> str:
    """All problems, one line each: where, what was given, what is wrong."""
    lines = []
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"])
        given = problem["input"]
        shown = f" = {given!r}" if isinstance(given, str | int | float) else ""
        message = problem["msg"].removeprefix("Value error, ")
        lines.append(f"{where}{shown}: {message}" if where else message)
    return "; ".join(lines)
