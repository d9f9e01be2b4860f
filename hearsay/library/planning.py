"""Surveys and plans."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hearsay.survey_files import read_survey
from protocols.planning import Plan
from protocols.planning import plan as plan_scheme
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey


def load_survey(source: str | Path | Mapping[str, Any]) -> Survey:
    """A survey from a file, from YAML or JSON text, or from its keys: one line that is not JSON is the name of a file.

    >>> load_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1,
    ...                 attributes: [{name: a, values: [x, y]}]}''').longitudinal
    False
    """
    if isinstance(source, Mapping):
        return parse_survey(json.dumps(source, default=str), "survey")
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        return parse_survey(source, "survey")
    return read_survey(Path(source))


def plan(
    survey: Survey, devices: int | None = None, error: float = 0.01, wanted: Mapping[str, float] | None = None
) -> Plan:
    """What a survey reveals and how precise its results will be: what `hearsay plan` shows, as a model.

    `devices` is how many report in a period, by default the survey's own number, or 10,000 if it has none. `error` is
    the standard error wanted for a share, `wanted` other ones by attribute or cross, for which shares are proposed.
    """
    return plan_scheme(Scheme(survey), devices, error, wanted)
