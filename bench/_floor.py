"""What counting with tokens takes at least: read the frames, insert their tokens into tables, and write the tokens.

Nothing is checked, counted or kept for a recovery. Tables have room for all tokens from the beginning, and the inserts
are the compiled loop of the worker.
"""

from __future__ import annotations

import time

import numpy as np
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from protocols.wire import Frame, Lookup, decode_frame
from servers.settings import KafkaSettings
from stream_app.counting.tables.tokens import TokenSet

RECORD_BYTES = 3 << 19
"""About what a worker has in a record of tokens."""
REQUEST_BYTES = 8 << 20


async def floor(
    kafka: KafkaSettings, reports: str, written: str, partitions: int, frames: int, lookup: Lookup
) -> float:
    """Frames a second, of so many; the tokens are written to another topic."""
    options = kafka.client_options()
    consumer = AIOKafkaConsumer(**options, enable_auto_commit=False, auto_offset_reset="earliest")
    producer = AIOKafkaProducer(**options, acks="all", enable_idempotence=True, max_request_size=REQUEST_BYTES)
    await consumer.start()
    await producer.start()
    try:
        consumer.assign([TopicPartition(reports, number) for number in range(partitions)])
        rows, place, done, confirmation = 0, 0, 0, None
        tables, waiting = [TokenSet() for _ in range(partitions)], [bytearray() for _ in range(partitions)]
        began = time.perf_counter()
        while done < frames:
            for tp, records in (await consumer.getmany(timeout_ms=200)).items():
                if not rows:
                    rows, place = _tokens_in(records[0].value, lookup)
                    for table in tables:
                        table.reserve(frames * rows // partitions * 2)
                tokens = [record.value[place : place + 8 * rows] for record in records]
                tables[tp.partition].insert(np.frombuffer(b"".join(tokens), np.uint64))
                done += len(records)
                for part in tokens:
                    waiting[tp.partition] += part
                    if len(waiting[tp.partition]) >= RECORD_BYTES:
                        if confirmation is not None:
                            await confirmation
                        value, waiting[tp.partition] = bytes(waiting[tp.partition]), bytearray()
                        confirmation = await producer.send(written, value, b"tokens", tp.partition)
        if confirmation is not None:
            await confirmation
        return done / (time.perf_counter() - began)
    finally:
        await producer.stop()
        await consumer.stop()


def _tokens_in(value: bytes, lookup: Lookup) -> tuple[int, int]:
    """How many tokens a frame has, and where; all frames of this benchmark are alike."""
    frame = decode_frame(value, lookup)
    assert isinstance(frame, Frame)
    return len(frame), value.index(frame.tokens.tobytes())
