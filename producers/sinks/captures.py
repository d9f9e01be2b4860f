"""What a capture says about itself, in `capture.json`: how many partitions its records are for, and their surveys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from protocols.errors import DeliveryError, FingerprintChanged, ReplayError, SettingsError
from protocols.scheme import Scheme
from protocols.survey import Survey
from servers.limited_reading import read_limited
from servers.private_files import private_directory, write_private

CAPTURE = "capture.json"
MOST_BYTES = 64 << 20
"""More than the surveys of a capture have."""


@dataclass(frozen=True)
class CapturedSurvey:
    """A survey, and the fingerprint that its captured reports carry."""

    survey: Survey
    fingerprint: str


@dataclass(frozen=True)
class Capture:
    """The contents of `capture.json`. Surveys are by id."""

    partitions: int
    surveys: Mapping[str, CapturedSurvey]

    def check_partitions(self, directory: Path, partitions: int) -> None:
        """Refuse a sink with another number of partitions: rows in a wrong partition are not counted."""
        if partitions != self.partitions:
            raise DeliveryError(
                f"{directory} was captured for {self.partitions} partitions, and the sink has {partitions}",
                "send it to a sink with as many partitions, or capture again",
            )


def read_capture(directory: Path) -> Capture:
    """What is captured in a directory."""
    try:
        content = json.loads(read_limited(directory / CAPTURE, MOST_BYTES))
        surveys = {
            id: CapturedSurvey(Survey.model_validate_json(json.dumps(entry["survey"])), str(entry["fingerprint"]))
            for id, entry in content["surveys"].items()
        }
        return Capture(int(content["partitions"]), surveys)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ValidationError):
        raise ReplayError(
            f"{directory} is not a capture: it has no readable {CAPTURE}",
            "give the directory that reports were captured into",
        ) from None


def begin_capture(directory: Path, partitions: int, scheme: Scheme) -> None:
    """Make a directory a capture for so many partitions, or add a survey to the one that it is."""
    private_directory(directory)
    surveys: dict[str, CapturedSurvey] = {}
    if (directory / CAPTURE).exists():
        before = read_capture(directory)
        surveys.update(before.surveys)
        if before.partitions != partitions:
            raise SettingsError(
                f"{directory} was captured for {before.partitions} partitions, not {partitions}",
                "capture into another directory, or for the same number of partitions",
            )
    id = scheme.survey.id
    if id in surveys and surveys[id].fingerprint != scheme.fingerprint:
        raise FingerprintChanged(
            f"{directory} has reports of survey {id!r} under other terms",
            "capture into another directory; changed terms need a new id",
        )
    surveys[id] = CapturedSurvey(scheme.survey, scheme.fingerprint)
    entries = {
        id: {"fingerprint": kept.fingerprint, "survey": kept.survey.model_dump(mode="json")}
        for id, kept in surveys.items()
    }
    write_private(directory / CAPTURE, json.dumps({"partitions": partitions, "surveys": entries}).encode())
