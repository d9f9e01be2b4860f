"""The finals, read back from the topic they were published to."""

from __future__ import annotations

from protocols.errors import LogError
from protocols.settings import KafkaSettings
from stream_app.reading import read_topic
from stream_app.results import Histogram
from stream_app.state import Period
from stream_app.topics import Topics


def read_finals(kafka: KafkaSettings, topics: Topics, survey: str | None = None) -> dict[Period, bytes]:
    """The final of every closed period, of one survey or of all, as it was published: JSON of a `Histogram`.

    After a crash a final may be there again. It must be the same, to the byte.
    """
    finals: dict[Period, bytes] = {}
    for record in read_topic(kafka, topics.histograms):
        name, _, period = record.key.decode().rpartition("/")
        if survey in (None, name) and finals.setdefault((name, int(period)), record.value) != record.value:
            raise LogError(f"period {period} of survey {name!r} was published twice, differently", "report this")
    return finals


def parse_final(value: bytes) -> Histogram:
    return Histogram.model_validate_json(value)
