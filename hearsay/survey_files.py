"""Survey files: those of users, and the annotated examples."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from protocols.errors import SurveyError
from protocols.survey import Survey
from protocols.survey_text import parse_survey, with_area_groups
from servers.limited_reading import read_limited

MAX_BYTES = 4 << 20
"""As many as the characters that a survey may have can take in UTF-8."""
MAX_AREAS = 16 << 20
EXAMPLES = ("mobility-week", "telemetry", "demand-year", "places")


def read_survey(path: Path) -> Survey:
    """The survey in a file."""
    try:
        survey = parse_survey(read_limited(path, MAX_BYTES).decode(), str(path))
    except OSError as error:
        hint = "give a survey file, such as survey.yaml"
        raise SurveyError(f"{path} cannot be read: {error.strerror}", hint) from None
    except UnicodeDecodeError:
        raise SurveyError(f"{path} is not UTF-8 text", "save it as UTF-8") from None
    files_of = {attribute.name: attribute.areas for attribute in survey.attributes if attribute.areas is not None}
    if not files_of:
        return survey
    return with_area_groups(survey, {name: _areas(path.parent / file) for name, file in files_of.items()})


def _areas(path: Path) -> str:
    try:
        return read_limited(path, MAX_AREAS).decode()
    except OSError as error:
        raise SurveyError(
            f"{path} cannot be read: {error.strerror}", "put the areas beside the survey, or leave areas out"
        ) from None
    except UnicodeDecodeError:
        raise SurveyError(f"{path} is not UTF-8 text", "save it as UTF-8") from None


def example_text(name: str) -> str:
    """The text of one of the annotated examples."""
    if name not in EXAMPLES:
        raise SurveyError(f"there is no example {name!r}", f"examples: {', '.join(EXAMPLES)}")
    return (files("protocols") / "survey_text" / "examples" / f"{name}.yaml").read_text("utf-8")


def example(name: str) -> Survey:
    """One of the annotated examples."""
    return parse_survey(example_text(name), name)
