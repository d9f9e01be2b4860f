"""Writing flushes to Kafka, stage by stage, each write confirmed by every replica in sync."""

import asyncio
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from aiokafka.errors import InvalidTimestampError

from protocols.errors import StateError
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER, Clock, encode_clock
from stream_app.counting.judging import is_letter, shortened
from stream_app.counting.state import partition_of_key
from stream_app.faust_app.overrides.app import TOO_LARGE
from stream_app.kafka.clocks import shown, wrong_clock
from stream_app.kafka.topics import Topics
from stream_app.log.flushes import Flush, Output, Write
from stream_app.log.recovery import survey_of

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


@dataclass(frozen=True)
class Writer:
    """Sends state records to their changelogs, and messages to their topics."""

    app: Any
    topics: Topics
    clock_key: bytes = field(repr=False)

    async def write(self, flush: Flush, changelog: str) -> dict[str, Exception]:
        """Write a flush: each stage is confirmed before the next begins. Raises if a write fails.

        If a broker refuses records as too large, it ends with their stage. Returns of which surveys they are, NO_SURVEY
        for the position.
        """
        with refused_times():
            for stage in flush.stages:
                if too_large := await self._write_stage(stage, changelog):
                    return too_large
        return {}

    async def _write_stage(self, stage: Sequence[Write | Output], changelog: str) -> dict[str, Exception]:
        """Write the records of a stage. Returns the surveys of those that are too large for the broker.

        A dead letter that is too large is cut, and written so.
        """
        confirmations = []
        for number, item in enumerate(stage, 1):
            confirmations.append(await self._send(item, changelog))
            if number % SENT_AT_ONCE == 0:
                await asyncio.sleep(0)
        too_large: dict[str, Exception] = {}
        for item, outcome in zip(stage, await asyncio.gather(*confirmations, return_exceptions=True), strict=True):
            found = outcome
            if isinstance(found, TOO_LARGE):  # perhaps only together with others: they share a batch
                found = await self._send_alone(item, changelog)
            if isinstance(found, TOO_LARGE) and is_letter(item):
                found = await self._send_alone(shortened(item), changelog)
            if isinstance(found, TOO_LARGE) and is_letter(item):
                log.error("a dead letter is lost", letter=item.key.decode(), why=_refusal(item, found).message)
            elif isinstance(found, TOO_LARGE):
                too_large[survey_of(item)] = _refusal(item, found)
            elif isinstance(found, BaseException):
                raise found
        return too_large

    async def close(self, clock: Clock) -> None:
        """Send a clock record to every partition of the reports topic."""
        value = encode_clock(clock, self.clock_key)
        headers = [(CONTENT_TYPE_HEADER, CLOCK.encode())]
        partitions = range(self.topics.partitions)
        with refused_times():
            await asyncio.gather(
                *[
                    await self.app.producer.send(self.topics.reports, None, value, partition, None, headers)
                    for partition in partitions
                ]
            )

    async def _send_alone(self, item: Write | Output, changelog: str) -> Any:
        """Send one record. Returns what became of it: a confirmation, or an error."""
        found: Any = (await asyncio.gather(await self._send(item, changelog), return_exceptions=True))[0]
        return found

    async def _send(self, item: Write | Output, changelog: str) -> Any:
        if isinstance(item, Write):
            partition = partition_of_key(item.key)
            return await self.app.producer.send(changelog, item.key, item.value, partition, None, None)
        topic = self.topics.named(item.topic)
        owner = owner_of(item.key.decode(), self.topics.merge_partitions) if item.topic == "partials" else None
        return await self.app.producer.send(topic, item.key, item.value, owner, None, list(item.headers))


@contextmanager
def refused_times() -> Iterator[None]:
    """Say that a clock is wrong where a broker refuses the time of a record. The next start compares both clocks."""
    try:
        yield
    except InvalidTimestampError as error:
        now = shown(time.time())
        raise wrong_clock(
            f"the broker refuses records of this moment: the clock of this machine says {now}, and that of the broker "
            "is another"
        ) from error


def _refusal(item: Write | Output, error: BaseException) -> StateError:
    what = f"the state record {item.key.decode()}" if isinstance(item, Write) else f"a message to {item.topic}"
    refused = StateError(
        f"the broker refuses {what} of {len(item.value or b''):,} bytes as too large",
        "set max.message.bytes of the topic as `hearsay topics check` says",
    )
    refused.__cause__ = error
    return refused
