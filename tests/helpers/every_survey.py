"""Every survey that is shipped as an example or asked in the clients' vectors, as one that is served today."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from hearsay.survey_files import EXAMPLES, example
from hearsay_device import Limits
from protocols.scheme import Scheme
from protocols.survey import Survey, version_of_new_texts
from protocols.survey_text import format_survey, parse_survey
from tests.clients.cases import ANY, FILE, values_of
from tests.clients.libraries import LIBRARIES, Clock, open_device
from tests.helpers.terms import decode_terms

ZONE = "Europe/Paris"
"""Vectors have a zone of their own, which no machine knows."""


@dataclass(frozen=True)
class Case:
    """A survey, and the library whose device answers it."""

    name: str
    survey: Survey
    library: str

    def file(self, directory: Path) -> Path:
        path = directory / f"{self.survey.id}.yaml"
        path.write_text(format_survey(self.survey), "utf-8")
        return path

    def report_to(self, gateway: str, directory: Path) -> str:
        """Let a new device send its first report; returns what became of it."""
        state = directory / f"{self.survey.id}-{self.library}-{datetime.now(UTC).timestamp()}"
        with open_device(self.library, state, Clock(datetime.now(UTC).timestamp()), Limits(**ANY)) as device:
            values = values_of(Scheme(self.survey), 0)
            return str(device.send(gateway, self.survey.id, values, trust_first_use=True).status)


def examples(shift: int = 0) -> list[Case]:
    """The shipped examples. The libraries take turns; `shift` begins with another one."""
    return [_case(f"example {name}", example(name), name, place + shift) for place, name in enumerate(EXAMPLES)]


def vectors(shift: int = 0) -> list[Case]:
    """The surveys of all vectors."""
    return [_case(name, survey, f"vector-{place}", place + shift) for place, (name, survey) in enumerate(_of_vectors())]


@cache
def _of_vectors() -> list[tuple[str, Survey]]:
    named: dict[str, str] = {}
    for case in json.loads(FILE.read_text())["cases"]:
        for terms in case["terms"].values():
            named.setdefault(terms, case["name"])
    surveys = [(name, decode_terms(terms.encode()).survey) for terms, name in named.items()]
    return [(name, survey) for name, survey in surveys if survey.version == version_of_new_texts()]


def _case(name: str, survey: Survey, id: str, turn: int) -> Case:
    return Case(name, _served_today(survey, f"s-{id}"), LIBRARIES[turn % len(LIBRARIES)])


def _served_today(survey: Survey, id: str) -> Survey:
    """The same questions, asked since midnight: `serve` closes periods by the time of day."""
    minimum = survey.minimum if "minimum" in survey.model_fields_set else 0
    text = format_survey(survey.model_copy(update={"id": id, "clock": "wall", "minimum": minimum}))
    zone = UTC if survey.time_zone is None else ZoneInfo(ZONE)
    midnight = datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    for key, value in (("start", midnight.isoformat()), ("time_zone", ZONE)):
        text = re.sub(f"^{key}: .*$", f"{key}: {value}", text, flags=re.MULTILINE)
    return parse_survey(text, id)
