"""The wall clock of surveys with `clock: wall`: their merge owner closes each period at its end plus grace."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from protocols.wire import Clock, last_due
from stream_app.counting.state import NEVER
from stream_app.faust_app.broker.surveys import Surveys
from stream_app.faust_app.partitions.tasks import PartitionTasks
from stream_app.faust_app.writing import Writer, owner_of
from stream_app.kafka.topics import Topics
from stream_app.merging.merger import Merger

REPEAT_AFTER = timedelta(seconds=5)
"""When to send a clock record again if a partition has not acknowledged it; repeats are harmless. The next one waits
twice as long, and so on ..."""
REPEAT_AT_LEAST = timedelta(minutes=5)
"""... up to this: a survey that is quarantined acknowledges none."""

log = structlog.get_logger(__name__)


class WallClock:
    """Sends clock records for the surveys that are merged by this worker."""

    def __init__(self, surveys: Surveys, merging: PartitionTasks[Merger], topics: Topics, writer: Writer) -> None:
        self._surveys = surveys
        self._merging = merging
        self._topics = topics
        self._writer = writer
        self._sent: dict[str, tuple[int, datetime, timedelta]] = {}  # what, when, and how long to wait for an answer

    async def tick(self, now: datetime) -> None:
        """Close the periods that are due and not yet closed in every partition."""
        for survey in self._surveys:
            if survey.clock != "wall":
                continue
            task = self._merging.get(owner_of(survey.id, self._topics.merge_partitions))
            if task is None:
                continue
            closed = task.reader.status(survey.id).closed_everywhere(self._topics.partitions)
            due = last_due(survey, now)
            sent, at, wait = self._sent.get(survey.id, (NEVER, now, REPEAT_AFTER))
            if due > closed and (due > sent or now - at >= wait):
                wait = REPEAT_AFTER if due > sent else min(2 * wait, REPEAT_AT_LEAST)
                self._sent[survey.id] = due, now, wait
                await self._writer.close(Clock(survey.id, due))
                log.info("clock record sent", survey=survey.id, through=due)
