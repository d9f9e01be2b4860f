"""What recovering the state of a counter and that of a merge have in common.

After a crash in the middle of a flush, or late writes of a worker that was paused, records are of different age. They
can be combined, because each has the offset it contains. A survey whose records cannot be used is quarantined.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Generic, Self, TypeVar

from stream_app.log.codec import Head, pack_position, unpack
from stream_app.log.flushes import Write, state_key
from stream_app.log.marks import Acceptance, Mark
from stream_app.log.quarantines import (
    NEVER_QUARANTINED,
    Errors,
    Quarantine,
    Quarantines,
    is_of_one_survey,
    survey_of,
)

NOTHING = -1  # the offset contained by something that contains none
Records = Iterable[tuple[bytes, bytes]]


@dataclass
class LogPosition:
    """What every position has: the offset through which its log is applied, that log, and quarantined surveys."""

    offset: int = NOTHING
    mark: Mark = field(default_factory=Mark)
    quarantines: Quarantines = field(default_factory=dict)

    def encode(self) -> bytes:
        """The position as a state record."""
        quarantines = {survey: asdict(quarantine) for survey, quarantine in self.quarantines.items()}
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
            self.position.quarantines[survey] = before.again(self.position.offset_of(survey), why)
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
