"""What is published: reports as the merge makes them, one for each period, and messages that are read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stream_app.results import PublishedResults

from analytics.mobility import CountHistory, MobilityReport, combine, mobility_report
from stream_app.log.flushes import Output, TopicName, Write


class Memory(PublishedResults):
    """Messages in a list, as a Kafka topic has them: repetitions included."""

    def __init__(self, items: Iterable[Write | Output]) -> None:
        self._messages = [item for item in items if isinstance(item, Output)]

    def messages(self, topic: TopicName) -> Iterator[Output]:
        return (message for message in self._messages if message.topic == topic)


def part(history: CountHistory, first: int, last: int) -> CountHistory:
    """The counts of some of the periods."""
    kept = slice(first - history.first, last - history.first + 1)
    tables = {name: getattr(history, name) for name in ("reports", "supports")}
    cut = {name: {key: periods[kept] for key, periods in table.items()} for name, table in tables.items()}
    agreed = None if history.agreed is None else history.agreed[kept]
    return replace(history, first=first, agreed=agreed, **cut)


def report_of(history: CountHistory, period: int) -> MobilityReport:
    """The report of one period, from no more than a horizon of counts."""
    return mobility_report(part(history, max(history.first, period - history.scheme.survey.horizon + 1), period))


def publish(history: CountHistory) -> MobilityReport:
    """The reports of all periods, put together."""
    return combine([report_of(history, period) for period in history.periods])
