"""Results, read back from the topics they were published to."""

from __future__ import annotations

from analytics.mobility import MobilityReport
from protocols.errors import ResultsError
from protocols.survey import Survey
from servers.settings import KafkaSettings
from stream_app.counting.state import Period
from stream_app.kafka.reading import read_topic
from stream_app.kafka.registry import published
from stream_app.kafka.topics import Topics
from stream_app.results.histograms import Histogram, Live


class KafkaResults:
    """What a cluster's workers have published, as it is at the moment of asking."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self._kafka = kafka
        self._topics = topics

    def surveys(self) -> list[Survey]:
        return list(published(self._kafka, self._topics).values())

    def histograms(self, survey: str) -> list[Histogram]:
        """The finals of a survey, by period."""
        finals = read_finals(self._kafka, self._topics, survey)
        return [Histogram.model_validate_json(finals[key]) for key in sorted(finals)]

    def mobility(self, survey: str) -> list[MobilityReport]:
        """The mobility reports of a survey, by period."""
        reports = _by_period(self._kafka, self._topics.mobility, survey)
        return [MobilityReport.model_validate_json(reports[key]) for key in sorted(reports)]

    def live(self, survey: str) -> Live | None:
        """How a survey stood when that was last published."""
        found = [r.value for r in read_topic(self._kafka, self._topics.live) if r.key == survey.encode()]
        return Live.model_validate_json(found[-1]) if found else None


def read_finals(kafka: KafkaSettings, topics: Topics, survey: str | None = None) -> dict[Period, bytes]:
    """The final of every closed period, of one survey or of all, as it was published: JSON of a `Histogram`."""
    return _by_period(kafka, topics.histograms, survey)


def _by_period(kafka: KafkaSettings, topic: str, survey: str | None) -> dict[Period, bytes]:
    """What was published of each period. After a crash it may be there again; it must be the same, to the byte."""
    found: dict[Period, bytes] = {}
    for record in read_topic(kafka, topic):
        name, _, period = record.key.decode().rpartition("/")
        if survey in (None, name) and found.setdefault((name, int(period)), record.value) != record.value:
            raise ResultsError(f"period {period} of survey {name!r} was published twice, differently", "report this")
    return found
