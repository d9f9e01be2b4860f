"""Survey files: those of users, and the annotated examples."""

from importlib.resources import files
from pathlib import Path

from protocols.errors import SurveyError
from protocols.survey import Survey
from protocols.survey_text import parse_survey, with_area_groups
from servers.private_files import read_limited

MAX_BYTES = 4 << 20
"""As many as the characters that a survey may have can take in UTF-8."""
MAX_BESIDE_BYTES = 16 << 20
"""Of a file beside a survey: more than a survey of any names may take as a record."""
EXAMPLES = ("mobility-week", "telemetry", "demand-year", "places", "installs")


def read_survey(path: Path) -> Survey:
    """The survey in a file, with the values and the areas in files beside it."""

    def beside(name: str) -> str:
        return read_text(path.parent / name, MAX_BESIDE_BYTES, "put it beside the survey, or leave it out")

    survey = parse_survey(read_text(path, MAX_BYTES, "give a survey file, such as survey.yaml"), str(path), beside)
    areas = {attribute.name: attribute.areas for attribute in survey.attributes if attribute.areas is not None}
    return with_area_groups(survey, {name: beside(file) for name, file in areas.items()}) if areas else survey


def read_text(path: Path, limit: int, hint: str) -> str:
    """A small text file in UTF-8."""
    try:
        return read_limited(path, limit).decode()
    except OSError as error:
        raise SurveyError(f"{path} cannot be read: {error.strerror}", hint) from None
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
