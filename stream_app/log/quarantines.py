"""Surveys that are quarantined: what went wrong with one survey must not stop the others.

A survey is quarantined when something fails that concerns only this survey: a record that is too large, a state record
that cannot be read, an error while its reports are counted or its results are made. What is in memory is given up
then, and the state is recovered from what was written, as after a crash, but with the survey quarantined: its records
are passed over, and its state stays as it was last written. An operator lets it go on (`hearsay recover --survey`):
then the log is read again from where its state stands. A restart alone does not try again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from protocols.errors import AnotherRelease, HearsayError, StateError
from stream_app.log.codec import pack
from stream_app.log.flushes import DEADLETTERS, Output, Write

LONGEST_WHY = 300
NOT_OF_ONE_SURVEY = (MemoryError, AnotherRelease)
"""Errors that end the worker, also if they come up with one survey: it is not the survey that is wrong."""


@dataclass(frozen=True)
class Quarantine:
    """That a survey is quarantined, or was.

    `offset` is what the state contains of the survey: the log through it. None stands for the offset of the position,
    which it replaces. `times` is how often the survey was quarantined, `why` what went wrong; "" once it goes on.
    """

    times: int
    offset: int | None
    why: str = ""

    def again(self, offset: int, error: Exception) -> "Quarantine":
        """It is quarantined once more, by an error; the position is at `offset`."""
        why = error.message if isinstance(error, HearsayError) else f"{type(error).__name__}: {error}"
        return Quarantine(self.times + 1, offset if self.offset is None else self.offset, why[:LONGEST_WHY])


Quarantines = dict[str, Quarantine]  # by survey
Errors = Mapping[str, Exception]  # by survey
NEVER_QUARANTINED = Quarantine(0, None)
NONE_FAIL: Errors = {}


def is_of_one_survey(survey: str, error: Exception) -> bool:
    """Whether an error concerns this survey alone: not too little memory, for instance, nor one of no named survey."""
    return bool(survey) and not isinstance(error, NOT_OF_ONE_SURVEY)


def resumption(times: int) -> bytes:
    """The state record by which an operator lets a survey go on that was quarantined so many times.

    Every recovery of a state in which the survey is quarantined applies it, unless it was quarantined more often than
    that.
    """
    return pack({"times": times})


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
