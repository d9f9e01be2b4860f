"""The status of a survey: what is open of it, and what was refused. A new one replaces the one before.

Counts of open periods are records of their own, of the same form as finals. Where the survey has a `minimum`, there are
none, and all numbers of reports are multiples of it: a number that is rounded to 0 is left out, because its key would
show that there is a report. Where the survey has presence_epsilon, the status says only what is closed.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from protocols.wire import CONTENT_TYPE_HEADER
from stream_app.finals.final import STATUS_TYPE, FinalKey
from stream_app.finals.missing import at_most, rounded
from stream_app.log.flushes import OPEN, Output
from stream_app.log.losses import Loss


class Status(BaseModel):
    """What the merge knows of a survey beside its finals."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    survey: str
    closed_through: int = -1  # the last period closed in every partition; -1: none
    open: dict[int, int] = {}  # reports by period
    rejects: dict[str, int] = {}  # rows refused, by reason
    lates: dict[int, int] = {}  # late rows, by period
    lost: tuple[Loss, ...] = ()  # first and last period, and how many reports of them together at most

    def reduced(self, minimum: int) -> Status:
        """What may be published of it. The numbers of open periods are reduced already, by `open_reports`."""
        rejects = {reason: rounded(n, minimum) for reason, n in self.rejects.items()}
        lates = {period: rounded(n, minimum) for period, n in self.lates.items()}
        return Status(
            survey=self.survey,
            closed_through=self.closed_through,
            open={period: n for period, n in self.open.items() if n},
            rejects={reason: n for reason, n in rejects.items() if n},
            lates={period: n for period, n in lates.items() if n},
            lost=tuple(Loss(first, last, at_most(n, minimum)) for first, last, n in self.lost),
        )

    @property
    def message(self) -> Output:
        headers = ((CONTENT_TYPE_HEADER, STATUS_TYPE.encode()),)
        return Output(OPEN, FinalKey(self.survey).encode(), self.model_dump_json().encode(), headers)
