"""Writing flushes to Kafka, stage by stage, each write confirmed by every replica in sync."""

import asyncio
import zlib
from collections.abc import Sequence
from typing import Any

import structlog

from protocols.errors import StateError
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER, Clock, encode_clock
from stream_app.counting.judging import is_letter, shortened
from stream_app.counting.state import partition_of_key
from stream_app.faust_app.broker.state_table import StateTable
from stream_app.faust_app.overrides.app import TOO_LARGE
from stream_app.kafka.topics import Topics
from stream_app.log.flushes import Flush, Output, Write
from stream_app.log.quarantines import survey_of

SENT_AT_ONCE = 200
"""How many records the producer is given before the event loop serves others: a flush may have many dead letters."""


NO_SURVEY = ""
"""What `survey_of` says of a position."""

log = structlog.get_logger(__name__)


def owner_of(survey: str, merge_partitions: int) -> int:
    """The partition of the partials topic in which a survey is merged.

    >>> owner_of("buttons", 4)
    2
    """
    return zlib.crc32(survey.encode()) % merge_partitions


class Writer:
    """Sends state records to their changelogs, and messages to their topics."""

    def __init__(self, app: Any, topics: Topics, clock_key: bytes) -> None:
        self._app = app
        self._topics = topics
        self._clock_key = clock_key

    async def write(self, flush: Flush, table: StateTable) -> dict[str, Exception]:
        """Write a flush: each stage is confirmed before the next begins. Raises if a write fails.

        If a broker refuses records as too large, it ends with their stage. Returns of which surveys they are, NO_SURVEY
        for the position.
        """
        for stage in flush.stages:
            if too_large := await self._write_stage(stage, table):
                return too_large
        return {}

    async def _write_stage(self, stage: Sequence[Write | Output], table: StateTable) -> dict[str, Exception]:
        """Write the records of a stage. Returns the surveys of those that are too large for the broker.

        A dead letter that is too large is cut, and written so.
        """
        confirmations = []
        for number, item in enumerate(stage, 1):
            confirmations.append(await self._send(item, table))
            if number % SENT_AT_ONCE == 0:
                await asyncio.sleep(0)
        too_large: dict[str, Exception] = {}
        for item, outcome in zip(stage, await asyncio.gather(*confirmations, return_exceptions=True), strict=True):
            found = outcome
            if isinstance(found, TOO_LARGE):  # perhaps only together with others: they share a batch
                found = await self._send_alone(item, table)
            if isinstance(found, TOO_LARGE) and is_letter(item):
                found = await self._send_alone(shortened(item), table)
            if isinstance(found, TOO_LARGE) and is_letter(item):
                log.error("a dead letter is lost", letter=item.key.decode(), why=_refusal(item, found).message)
            elif isinstance(found, TOO_LARGE):
                too_large[survey_of(item)] = _refusal(item, found)
            elif isinstance(found, BaseException):
                raise found
            elif isinstance(item, Write):
                table.put(item.key, item.value)
        return too_large

    async def close(self, clock: Clock) -> None:
        """Send a clock record to every partition of the reports topic."""
        value = encode_clock(clock, self._clock_key)
        headers = [(CONTENT_TYPE_HEADER, CLOCK.encode())]
        partitions = range(self._topics.partitions)
        await asyncio.gather(
            *[
                await self._app.producer.send(self._topics.reports, None, value, partition, None, headers)
                for partition in partitions
            ]
        )

    async def _send_alone(self, item: Write | Output, table: StateTable) -> Any:
        """Send one record. Returns what became of it: a confirmation, or an error."""
        found: Any = (await asyncio.gather(await self._send(item, table), return_exceptions=True))[0]
        return found

    async def _send(self, item: Write | Output, table: StateTable) -> Any:
        if isinstance(item, Write):
            partition = partition_of_key(item.key)
            return await self._app.producer.send(table.changelog, item.key, item.value, partition, None, None)
        topic = self._topics.named(item.topic)
        owner = owner_of(item.key.decode(), self._topics.merge_partitions) if item.topic == "partials" else None
        return await self._app.producer.send(topic, item.key, item.value, owner, None, list(item.headers))


def _refusal(item: Write | Output, error: BaseException) -> StateError:
    what = f"the state record {item.key.decode()}" if isinstance(item, Write) else f"a message to {item.topic}"
    refused = StateError(
        f"the broker refuses {what} of {len(item.value or b''):,} bytes as too large",
        "set max.message.bytes of the topic as `hearsay topics check` says",
    )
    refused.__cause__ = error
    return refused
