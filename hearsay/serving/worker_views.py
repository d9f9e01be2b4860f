"""The views of a worker: made in threads of their own, so that counting and merging never wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import structlog

from servers.settings import KafkaSettings
from stream_app.faust_app import Health, note_forecasts, note_verdict, owner_of
from stream_app.kafka import Topics
from views.following import TOPICS, following
from views.forecasts import ForecastResult
from views.results import Histogram
from views.sinks import Made

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Merged:
    """The surveys that a worker merges."""

    partitions: int
    owned: frozenset[int]

    def __call__(self, survey: str) -> bool:
        return owner_of(survey, self.partitions) in self.owned


def making_views(
    kafka: KafkaSettings, topics: Topics, sinks: Sequence[str], health: Health
) -> AbstractContextManager[None]:
    """Make the views of the surveys that this worker merges, for the time of the block: for the topics and `sinks`."""

    def mine() -> Merged:
        return Merged(topics.merge_partitions, health.merging())

    return following(kafka, topics, [TOPICS, *sinks], mine, note)


def note(made: Made) -> None:
    """Say in logs and metrics what is unusual about a result."""
    result = made.result
    if isinstance(result, Histogram) and result.integrity is not None:
        note_verdict(result.survey, result.integrity.alarms)
        for attribute, check in result.integrity.alarms:
            about = {"survey": result.survey, "period": result.period, "attribute": attribute, "check": check}
            log.warning("reports do not fit honest devices", **about)
    elif isinstance(result, ForecastResult):
        numbers = sum(int(np.isfinite(table.stretch).sum()) for table in result.tables if table.stretch is not None)
        note_forecasts(result.survey, numbers, sum(len(table.unexpected) for table in result.tables))
