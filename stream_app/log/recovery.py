"""What recovering the state of a counter and that of a merge have in common.

After a crash in the middle of a flush, or late writes of a worker that was paused, records are of different age. They
can be combined, because each has the offset it contains.

A survey is quarantined when something fails that concerns only this survey: a record that is too large, a state record
that cannot be read, an error while its reports are counted or its results are made. What is in memory is given up
then, and the state is recovered from what was written, as after a crash, but with the survey quarantined: its records
are passed over, and its state stays as it was last written. An operator lets it go on (`hearsay recover --survey`):
then the log is read again from where its state stands. A restart alone does not try again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Generic, Self, TypeVar

from protocols.errors import AnotherRelease, HearsayError, StateError
from stream_app.log.codec import Head, pack, pack_position, unpack
from stream_app.log.flushes import DEADLETTERS, Output, Write, state_key
from stream_app.log.marks import Acceptance, Mark

NOTHING = -1  # the offset contained by something that contains none
Records = Iterable[tuple[bytes, bytes]]
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


@dataclass(frozen=True)
class OnlyNow(Quarantine):
    """A quarantine that is not written: this process leaves the survey out, and the next one tries it again."""


class LeftOut(HearsayError):
    """Why a process leaves a survey out from its start. No record of the survey may come to it."""


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


@dataclass
class LogPosition:
    """What every position has: the offset through which its log is applied, that log, and quarantined surveys."""

    offset: int = NOTHING
    mark: Mark = field(default_factory=Mark)
    quarantines: Quarantines = field(default_factory=dict)

    def encode(self) -> bytes:
        """The position as a state record."""
        written = {name: one for name, one in self.quarantines.items() if not isinstance(one, OnlyNow)}
        quarantines = {survey: asdict(quarantine) for survey, quarantine in written.items()}
        return pack_position({**vars(self), "mark": asdict(self.mark), "quarantines": quarantines, **self._written()})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The position in a state record."""
        head, _ = unpack(data)
        quarantines = {survey: Quarantine(**quarantine) for survey, quarantine in head["quarantines"].items()}
        found = {**head, "mark": Mark(**head["mark"]), "quarantines": quarantines, **cls._read(head)}
        return cls(**{own.name: found[own.name] for own in fields(cls)})

    def _written(self) -> Head:
        """The fields of a subclass that have another form in a record."""
        return {}

    @staticmethod
    def _read(head: Head) -> dict[str, Any]:
        """The same, read."""
        return {}

    def offset_of(self, survey: str) -> int:
        """Through which offset the state contains a survey."""
        quarantine = self.quarantines.get(survey, NEVER_QUARANTINED)
        return self.offset if quarantine.offset is None else quarantine.offset

    def is_quarantined(self, survey: str) -> bool:
        return bool(self.quarantines.get(survey, NEVER_QUARANTINED).why)

    def accept(self, acceptance: bytes | None) -> bool:
        """Go on with the log that an operator has accepted; False if there is none, or this position does already."""
        mark = self.mark if acceptance is None else Acceptance.decode(acceptance).mark
        if mark.acceptances <= self.mark.acceptances:
            return False
        self.mark = mark
        return True

    def resume(self, survey: str, resumption: bytes | None) -> None:
        """Let a survey go on, if there is a resumption of it."""
        quarantine = self.quarantines.get(survey, NEVER_QUARANTINED)
        if resumption is not None and quarantine.why and quarantine.times <= unpack(resumption)[0]["times"]:
            self.quarantines[survey] = replace(quarantine, why="")


P = TypeVar("P", bound=LogPosition)
S = TypeVar("S")


class StateRecords(Generic[P]):
    """The records of a state ("count" or "merge") of one partition: its position, and those of each survey.

    `failed` are surveys that are quarantined from now on: these, and those that fail here. Records that are `stale` are
    to be deleted.
    """

    def __init__(self, state: str, partition: int, records: Records, position: type[P], failing: Errors) -> None:
        self.failed = dict(failing)
        self.stale: list[Write] = []
        found = dict(records)
        written = found.pop(state_key(state, partition, "position"), None)
        self.position = position() if written is None else position.decode(written)
        accepted = found.pop(state_key(state, partition, "accepted"), None)
        self.lost = 0 if accepted is None else Acceptance.decode(accepted).lost
        """With the log that an operator has accepted, at most so many reports of each survey are lost ..."""
        self.is_accepted_now = self.position.accept(accepted)
        """... and the position does not say so yet."""
        self.of_surveys: dict[str, dict[bytes, bytes]] = {}
        for key, value in sorted(found.items()):
            self.of_surveys.setdefault(survey_of(Write(key, value)), {})[key] = value
        for survey, group in self.of_surveys.items():
            self.position.resume(survey, group.pop(state_key(state, partition, "resumed", survey), None))

    def log_start(self, begin: int) -> int:
        """Where a log begins in offsets of the state, if it begins at this offset of its own."""
        return max(begin + self.position.mark.shift, self.position.mark.floor)

    def recover_each(self, recover: Callable[[str, Mapping[bytes, bytes]], tuple[S, list[Write]]]) -> dict[str, S]:
        """The state of each survey that is not quarantined. `recover` gives it, and the records that are stale."""
        recovered: dict[str, S] = {}
        for survey, group in self.of_surveys.items():
            if self.position.is_quarantined(survey) or survey in self.failed:
                continue
            try:
                recovered[survey], stale = recover(survey, group)
                self.stale += stale
            except Exception as error:
                if not is_of_one_survey(survey, error):
                    raise
                self.failed[survey] = error
        for survey, why in self.failed.items():
            before = self.position.quarantines.get(survey, NEVER_QUARANTINED)
            quarantine = before.again(self.position.offset_of(survey), why)
            if isinstance(why, LeftOut):
                quarantine = OnlyNow(**asdict(quarantine))
            self.position.quarantines[survey] = quarantine
        return recovered


def resume_after(offset: int, listed: Mapping[Any, int], held: Mapping[Any, int]) -> int:
    """The offset after which to read on: the position's, or the lowest of the records older than it lists.

    >>> resume_after(100, {"a": 90, "b": 80}, {"a": 90, "b": 40})
    40
    >>> resume_after(100, {"a": 90}, {})
    -1
    """
    older = [held.get(key, NOTHING) for key, due in listed.items() if held.get(key, NOTHING) < due]
    return min([offset, *older])
