"""What the merging agent does with a partial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aiokafka import ConsumerRecord
from faust.types import TP

from protocols.keystream import Keyring
from stream_app.faust_app.lanes import Lane
from stream_app.faust_app.metrics import note_finals
from stream_app.faust_app.options import WorkerOptions
from stream_app.faust_app.surveys import Surveys
from stream_app.merging import Merger
from stream_app.state import Period


class Merging:
    """Feeds partials to the merge of their surveys."""

    def __init__(self, options: WorkerOptions, surveys: Surveys) -> None:
        self._options = options
        self._surveys = surveys

    def make(self, owner: int, records: Mapping[bytes, bytes], log_start: int) -> Merger:
        """The merge of a partition of the partials topic, as the changelog has it."""
        options = self._options
        with self._surveys.certainly():
            return Merger(
                owner,
                options.topics.partitions,
                self._surveys.lookup,
                Keyring(options.presence_key),
                records.items(),
                log_start,
            )

    async def apply(self, lane: Lane[Merger], records: Sequence[ConsumerRecord], end: Callable[[TP], int]) -> bool:
        """Merge partials; whether one made a period final."""
        made: list[Period] = []
        for record in records:
            if (record.key or b"").decode() not in self._surveys:  # another worker knew it already
                await self._surveys.settle(lane.tp, record.offset, end(lane.tp))
            with self._surveys.certainly():
                made += lane.machine.apply(record.offset, record.value or b"")
        note_finals(made)
        return bool(made)
