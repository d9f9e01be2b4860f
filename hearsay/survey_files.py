"""Survey files: those of users, and the annotated examples.

Which version of the terms a text has follows from where its survey is counted: there it keeps the version under which
it was first read, and its text the keys of that version. So whoever reads a file says where to look.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from hearsay.data_directory import HOME, SERVED, DataDirectory
from protocols.errors import SurveyError
from protocols.survey import Survey
from protocols.survey_text import CountedVersion, parse_survey, with_area_groups
from servers.private_files import read_limited

if TYPE_CHECKING:
    from servers.settings import KafkaSettings

MAX_BYTES = 4 << 20
"""As many as the characters that a survey may have can take in UTF-8."""
MAX_BESIDE_BYTES = 16 << 20
"""Of a file beside a survey: more than a survey of any names may take as a record."""
EXAMPLES = ("mobility-week", "telemetry", "demand-year", "places", "installs")


REHEARSED = "-sim"
"""The end of the id under which `hearsay run` simulates a survey that has `clock: wall`."""


def counted_at(data: Path | None = None, kafka: str | None = None, capture: Path | None = None) -> CountedVersion:
    """Under which version a survey is counted on a cluster, captured for one, or counted in a data directory.

    Without a directory, those are looked at where `hearsay run`, `replay` and `serve` keep a survey by default.
    """

    def version_of(survey: str) -> int | None:
        on_cluster = None if kafka is None else counted_on(_settings_of(kafka))(survey)
        captured = None if capture is None else _captured_version(survey, capture)
        if (known := on_cluster or captured) is not None:
            return known
        roots = (HOME / survey, HOME / SERVED) if data is None else (data,)
        return next(filter(None, (DataDirectory(root).counted_version(survey) for root in roots)), None)

    return version_of


def counted_or_rehearsed_at(data: Path | None, kafka: str | None) -> CountedVersion:
    """The same for a survey that is simulated: it may be counted as a rehearsal, under an id of its own."""
    counted = counted_at(data, kafka)
    return lambda survey: counted(survey) or counted(rehearsal_id(survey))


def rehearsal_id(survey: str) -> str:
    """The id under which a survey is simulated whose periods only the time of day closes."""
    return survey[: 128 - len(REHEARSED)] + REHEARSED


def counted_on(kafka: KafkaSettings) -> CountedVersion:
    """Under which version a survey is published on a cluster."""
    from stream_app.kafka import Topics, published  # takes time that a directory does not need

    def version_of(survey: str) -> int | None:
        known = published(kafka, Topics(kafka.prefix)).get(survey)
        return None if known is None else known.survey.version

    return version_of


def _settings_of(kafka: str) -> KafkaSettings:
    from servers.settings import load  # takes time that a directory does not need

    return load().at(kafka).kafka


def _captured_version(survey: str, directory: Path) -> int | None:
    from producers.sinks import CAPTURE, read_capture

    if not (directory / CAPTURE).exists():
        return None
    known = read_capture(directory).surveys.get(survey)
    return None if known is None else known.survey.version


def read_survey(path: Path, counted: CountedVersion | None = None) -> Survey:
    """The survey in a file, with the values and the areas in files beside it. `counted` knows where it is counted.

    Left out: what is counted in the usual directories (`counted_at`).
    """

    def beside(name: str) -> str:
        return read_text(path.parent / name, MAX_BESIDE_BYTES, "put it beside the survey, or leave it out")

    text = read_text(path, MAX_BYTES, "give a survey file, such as survey.yaml")
    survey = parse_survey(text, str(path), beside, counted=counted or counted_at())
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
