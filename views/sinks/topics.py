"""Results as messages: JSON on the topics of a Kafka cluster, or in the store of a data directory.

The histogram of a period is published after everything else that is made of it. So the newest histogram says through
which period a survey is complete.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence

from stream_app.finals import FinalKey
from stream_app.local import LocalStore
from stream_app.log import Output
from views.results.histogram import HISTOGRAMS
from views.sinks.sink import Made, Sink
from views.view import is_piece

NO_LIMIT = 1 << 62  # a message in a store may be as large as it needs to be


class TopicsSink(Sink, ABC):
    """Messages of results, written in order. `limit` is the largest value of a message."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: list[Output] = []

    def skip(self, key: FinalKey) -> None:
        """Nothing: that a period has no histogram shows that its results are not there."""

    def lacks(self, key: FinalKey) -> bool:
        return key not in self.published()

    @abstractmethod
    def published(self) -> Collection[FinalKey]:
        """The periods that had a histogram when the sink was opened, or have one now."""

    def complete(self) -> Mapping[str, int]:
        return {key.survey: key.period or 0 for key in sorted(self.published())}

    def add(self, made: Made) -> None:
        self._waiting += made.view.messages(made.key, made.result, self._limit)

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        last = [output for output in waiting if output.topic == HISTOGRAMS.name and not is_piece(output)]
        first = [output for output in waiting if is_piece(output)]
        between = [output for output in waiting if output not in (*first, *last)]
        self._write([stage for stage in (first, between, last) if stage])

    @abstractmethod
    def _write(self, stages: Sequence[Sequence[Output]]) -> None:
        """Write messages. Each stage is durable before the next one begins, or all are together."""


class StoreTopics(TopicsSink):
    """The messages of a data directory."""

    def __init__(self, store: LocalStore) -> None:
        super().__init__(NO_LIMIT)
        self._store = store
        self._published: Collection[FinalKey] | None = None

    def _write(self, stages: Sequence[Sequence[Output]]) -> None:
        with self._store.transaction():
            for stage in stages:
                self._store.write(stage)

    def published(self) -> Collection[FinalKey]:
        """As of the first time that this is asked: what this sink writes later is its own."""
        if self._published is None:
            self._published = periods_of(self._store.keys(HISTOGRAMS.name))
        return self._published

    def close(self) -> None:
        """Nothing: whoever opened the store closes it."""


def periods_of(keys: Iterable[bytes]) -> frozenset[FinalKey]:
    """The periods among the keys of results, without those of pieces."""
    return frozenset(FinalKey.decode(key) for key in keys if b"#" not in key)
