"""Forecasts on Kafka: made in a thread of their own from finals that were just published.

Counting and merging never wait for them. A forecast that fails, or that a crash prevents, is made with the next final.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import structlog

from stream_app.faust_app.broker.surveys import Surveys
from stream_app.faust_app.monitoring.metrics import note_forecasts
from stream_app.faust_app.options import WorkerOptions
from stream_app.kafka.results import KafkaResults
from stream_app.log.flushes import Output
from stream_app.results.forecasting import Forecasting
from stream_app.results.result_topics import HISTOGRAMS

log = structlog.get_logger(__name__)


class Forecasts:
    """Makes and sends the forecasts of the surveys that this worker merges."""

    def __init__(self, app: Any, options: WorkerOptions, surveys: Surveys) -> None:
        self._app = app
        self._topics = options.topics
        published = KafkaResults(options.kafka, options.topics)
        self._forecasting = Forecasting(surveys.lookup, published, note_forecasts)
        self._waiting: asyncio.Queue[Output | str] = asyncio.Queue()

    def note(self, written: Output) -> None:
        """Note a message that was published."""
        if written.topic == HISTOGRAMS.name:
            key, piece = HISTOGRAMS.decode_key(written.key)
            if piece is None and self._forecasting.wanted(key.survey):
                self._waiting.put_nowait(written)

    def catch_up(self, surveys: Iterable[str]) -> None:
        """Make what another worker, or an earlier run of this one, could not make."""
        for survey in surveys:
            if self._forecasting.wanted(survey):
                self._waiting.put_nowait(survey)

    async def run(self) -> None:
        """Make forecasts for ever."""
        while True:
            asked = await self._waiting.get()
            try:
                made = self._forecasting.catch_up(asked) if isinstance(asked, str) else self._forecasting.after(asked)
                while (output := await asyncio.to_thread(next, made, None)) is not None:
                    await self._send(output)
            except Exception as error:  # whatever it is, results matter more than forecasts
                survey = asked if isinstance(asked, str) else HISTOGRAMS.decode_key(asked.key)[0].survey
                self._forecasting.forget(survey)
                log.error("no forecast", survey=survey, error=str(error))

    async def _send(self, output: Output) -> None:
        topic = self._topics.named(output.topic)
        await (await self._app.producer.send(topic, output.key, output.value, None, None, list(output.headers)))
