"""Surveys that are set aside: what went wrong with one survey must not stop the others.

A survey is set aside when something fails that concerns only this survey: a record that is too large, a state record
that cannot be read, an error while its reports are counted or its results are made. From then on its records are passed
over, and its state stays as it was last written. An operator lets it go on (`hearsay recover --survey`): then the log
is read again from where its state stands. A restart alone does not try again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from protocols.errors import AnotherRelease, HearsayError, StateError
from stream_app.log.codec import Head, pack, unpack
from stream_app.log.flushes import DEADLETTERS, Output, Write

LONGEST_WHY = 300
NOT_OF_ONE_SURVEY = (MemoryError, AnotherRelease)
"""Errors that end the worker, also if they come up with one survey: it is not the survey that is wrong."""


@dataclass(frozen=True)
class Aside:
    """That a survey is set aside, or was.

    `offset` is what the state contains of the survey: the log through it. None stands for the offset of the position,
    which it replaces. `times` is how often the survey was set aside, `why` what went wrong; "" once it goes on.
    """

    times: int
    offset: int | None
    why: str = ""

    @property
    def head(self) -> Head:
        return asdict(self)

    def resumed(self) -> Aside:
        """It goes on: the log is read again from its offset."""
        return replace(self, why="")

    def again(self, offset: int, error: Exception) -> Aside:
        """It is set aside once more, by an error; the position is at `offset`."""
        return Aside(self.times + 1, offset if self.offset is None else self.offset, _described(error))


Asides = dict[str, Aside]  # by survey
NEVER_ASIDE = Aside(0, None)


@dataclass(frozen=True)
class SurveyFailed:
    """News for the operator: a survey was just set aside."""

    survey: str
    aside: Aside
    error: Exception


@dataclass(frozen=True)
class Resumption:
    """An operator lets a survey go on that was set aside so many times.

    It is a state record of its own, applied by every recovery of a state in which the survey is aside, unless it was
    set aside more often than that.
    """

    times: int

    def encode(self) -> bytes:
        return pack({"times": self.times})

    @staticmethod
    def decode(data: bytes) -> Resumption:
        return Resumption(unpack(data)[0]["times"])


def resume(asides: Asides, resumptions: Mapping[str, bytes]) -> None:
    """Let the surveys go on for which there is a resumption."""
    for survey, record in resumptions.items():
        aside = asides.get(survey)
        if aside is not None and aside.why and aside.times <= Resumption.decode(record).times:
            asides[survey] = aside.resumed()


def heads(asides: Asides) -> Head:
    return {survey: aside.head for survey, aside in asides.items()}


def from_heads(head: Head) -> Asides:
    return {survey: Aside(**aside) for survey, aside in head.items()}


def survey_of(item: Write | Output) -> str:
    """The survey that a message or a state record with a survey in its key belongs to; "" if it belongs to none."""
    if isinstance(item, Write):
        _, _, _, *named = item.key.decode().split("/")
        return named[0] if named else ""
    if item.topic == DEADLETTERS:
        return dict(item.headers)["survey"].decode()
    return item.key.decode().partition("/")[0].partition("#")[0]


def check_size(survey: str, what: str, value: bytes, limit: int) -> None:
    if len(value) > limit:
        raise StateError(
            f"survey {survey!r}: {what} takes {len(value):,} bytes, and a record at most {limit:,}",
            "publish a survey with fewer values or a shorter horizon",
        )


def _described(error: Exception) -> str:
    text = error.message if isinstance(error, HearsayError) else f"{type(error).__name__}: {error}"
    return text[:LONGEST_WHY]
