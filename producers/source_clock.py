"""Time for surveys whose source tells it: clock records, as the simulated or replayed time passes (DESIGN 1.5)."""

from __future__ import annotations

from math import ceil

from producers.sinks.base import Sink
from protocols.errors import DeliveryError, SettingsError, SurveyError
from protocols.survey import Survey
from protocols.wire import CLOCK, Clock, encode_clock


class SourceClock:
    """Closes period p once the source's own time has passed the end of p plus grace.

    The source's time is counted in periods: at time t, period t begins. Saying a time twice is harmless.
    """

    def __init__(self, survey: Survey, key: bytes | None, sink: Sink) -> None:
        if survey.clock != "source":
            raise SurveyError(
                f"survey {survey.id!r} has `clock: wall`: its periods are closed by real time, which a simulation or "
                "a replay does not keep",
                f"make a copy of the survey with another id, such as {survey.id}-sim, and `clock: source`",
            )
        if key is None:
            raise SettingsError(
                f"survey {survey.id!r} has `clock: source`, and its source has no key to sign clock records with",
                "give the operator's clock key (HEARSAY_CLOCK_KEY)",
            )
        self._survey = survey
        self._key = key
        self._sink = sink
        self._through = -1

    @property
    def lag(self) -> int:
        """How many periods grace keeps a period open after its end."""
        return ceil(self._survey.grace / self._survey.period)

    def reach(self, time: int) -> int:
        """Tell every partition which periods are over at this time; the last of them (-1: none)."""
        through = time - 1 - self.lag
        if through > self._through:
            record = encode_clock(Clock(self._survey.id, through), self._key)
            try:
                for partition in range(self._sink.partitions):
                    self._sink.send(partition, CLOCK, record)
                self._sink.flush()
            except DeliveryError as error:
                where = f"the end of period {through} of survey {self._survey.id!r}"
                raise DeliveryError(f"{where}: {error.message}", error.hint) from error
            self._through = through
        return self._through
