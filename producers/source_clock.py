"""Clock records for surveys with `clock: source`, whose time is simulated or replayed."""

from producers.sinks import Sink
from protocols.errors import DeliveryError, SurveyError
from protocols.survey import Survey
from protocols.wire import CLOCK, Clock, encode_clock


def require_source_clock(survey: Survey) -> None:
    """Refuse a survey whose periods neither a simulation nor a replay can close."""
    if survey.clock != "source":
        raise SurveyError(
            f"survey {survey.id!r} has `clock: wall`: its periods are closed by real time, not by the time of a "
            "simulation or a replay",
            f"make a copy of the survey with another id, such as {survey.id}-sim, and `clock: source`",
        )


class SourceClock:
    """Closes period p once the source's watermark is at the end of p plus grace.

    The watermark is counted in periods: at t, period t begins. Advancing to the same t again changes nothing.
    """

    def __init__(self, survey: Survey, key: bytes, sink: Sink) -> None:
        self._survey = survey
        self._key = key
        self._sink = sink
        self._closed = -1

    def advance(self, time: int) -> None:
        """Close the periods whose grace has ended, if they are open."""
        calendar = self._survey.calendar
        self.finish(calendar.closed(calendar.begin(time), self._survey.grace))

    def finish(self, last: int) -> None:
        """Close all periods up to the last one, by a clock record to every partition: no reports follow."""
        if last <= self._closed:
            return
        record = encode_clock(Clock(self._survey.id, last), self._key)
        try:
            for partition in range(self._sink.partitions):
                self._sink.send(partition, CLOCK, record)
            self._sink.flush()
        except DeliveryError as error:
            where = f"the end of period {last} of survey {self._survey.id!r}"
            raise DeliveryError(f"{where}: {error.message}", error.hint) from error
        self._closed = last
