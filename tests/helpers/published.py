"""What is published: reports as the merge makes them, one for each period, and messages that are read back."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import views.results.histogram
from analytics.mobility import CountHistory, MobilityReport, combine, mobility_report
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey import Survey
from stream_app.counting.counters import Counts
from stream_app.counting.partials import Part
from stream_app.finals import Final, FinalKey
from stream_app.log.flushes import Come, Output, TopicName, Write
from stream_app.merging.survey import HeldPart, MergedSurvey, SurveyStatus
from views.past import Past, PeriodAnswers
from views.reading import Results
from views.results import HISTOGRAMS, MOBILITY, Histogram, MobilityResult
from views.results.histogram import Kind
from views.runner import Runner
from views.sinks.topics import NO_LIMIT, TopicsSink, periods_of


class Kept(TopicsSink):
    """Messages in a list, as a Kafka topic has them: repetitions included."""

    def __init__(self, surveys: Iterable[Survey] = (), limit: int = NO_LIMIT) -> None:
        super().__init__(limit)
        self.kept: list[Output] = []
        self._surveys = list(surveys)

    def surveys(self) -> list[Survey]:
        return self._surveys

    def messages(self, topic: TopicName) -> Iterator[Output]:
        return (message for message in self.kept if message.topic == topic)

    def _write(self, stages: Sequence[Sequence[Output]]) -> None:
        self.kept += [message for stage in stages for message in stage]

    def published(self) -> Collection[FinalKey]:
        return periods_of(message.key for message in self.messages(HISTOGRAMS.name))

    def close(self) -> None:
        """Nothing to close."""


def making(*surveys: Survey) -> tuple[Runner, Kept]:
    """A runner, and where it puts results."""
    kept = Kept(surveys)
    return Runner([kept]), kept


def come(items: Iterable[Write | Output], *surveys: Survey) -> Come:
    """What a flush publishes, as a runner gets it."""
    outputs = [item for item in items if isinstance(item, Output)]
    return Come(list(surveys), [(0, at, output) for at, output in enumerate(outputs)])


class Memory(Results):
    """The results of what is written: finals and what is open, in the order of publication."""

    def __init__(self, items: Iterable[Write | Output], *surveys: Survey, limit: int = NO_LIMIT) -> None:
        store = Kept(surveys, limit)
        super().__init__(store)
        self.outputs = [item for item in items if isinstance(item, Output)]
        Runner([store]).apply(come(self.outputs, *surveys))
        self.made = list(store.kept)
        store.kept += self.outputs


def build_histogram(kind: Kind, scheme: Scheme, period: int, counts: Counts) -> Histogram:
    """The histogram of a period with these counts, without a verdict."""
    final = finals_of(scheme, {period: counts})[-1]
    return views.results.histogram.build_histogram(kind, scheme, period, PeriodAnswers.of(scheme, final))


def build_mobility(scheme: Scheme, period: int, closed: Mapping[int, Counts], key: bytes = bytes(16)) -> MobilityResult:
    """The mobility report of a period, from the counts of consecutive periods."""
    made = MOBILITY.make(Past(scheme, finals_of(scheme, {t: closed[t] for t in closed if t <= period}, key)))
    assert made is not None
    return made


def finals_of(scheme: Scheme, closed: Mapping[int, Counts], key: bytes = bytes(16)) -> list[Final]:
    """The finals of consecutive periods with these counts, as the merge makes them."""
    merged = MergedSurvey(0, scheme.survey.id, SurveyStatus())
    for period, counts in closed.items():
        part = Part(scheme.survey.id, period, 0, 0, closed=True, counts=counts)
        merged.parts[period, 0] = HeldPart(0, part)
    return [Final.decode(merged.freeze(scheme, period, Keyring(key))) for period in sorted(closed)]


def part(history: CountHistory, first: int, last: int) -> CountHistory:
    """The counts of some of the periods."""
    kept = slice(first - history.first, last - history.first + 1)
    tables = {name: getattr(history, name) for name in ("reports", "supports")}
    cut = {name: {key: periods[kept] for key, periods in table.items()} for name, table in tables.items()}
    return replace(history, first=first, **cut)


def report_of(history: CountHistory, period: int) -> MobilityReport:
    """The report of one period, from no more than a horizon of counts."""
    return mobility_report(part(history, max(history.first, period - history.scheme.survey.horizon + 1), period))


def publish(history: CountHistory) -> MobilityReport:
    """The reports of all periods, put together."""
    return combine([report_of(history, period) for period in history.periods])
