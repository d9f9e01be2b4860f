"""A bare loop of aiokafka: it takes what is there and writes as much as a worker would, as often as one. Nothing else.

    python -m bench._loop BROKER REPORTS_TOPIC WRITTEN_TOPIC SECONDS

Prints "ready", and after so many seconds the CPU seconds that it took in each of them.
"""

from __future__ import annotations

import asyncio
import sys
import time

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

STAGES = 3
"""A flush has tokens, then counters, then positions: each is confirmed before the next is sent ..."""
KEY, RECORD = b"bare", bytes(600)
"""... in records of about this size."""
POLL_MILLISECONDS, POLL_BYTES = 100, 64 << 10  # as a worker polls
TAKES = 2
"""How often a worker takes reports that trickle before it writes, which it does every second."""


async def main(broker: str, reports: str, written: str, seconds: float) -> None:
    options = {"fetch_max_wait_ms": POLL_MILLISECONDS, "fetch_min_bytes": POLL_BYTES}
    consumer = AIOKafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False, **options)
    producer = AIOKafkaProducer(bootstrap_servers=broker, acks="all", enable_idempotence=True)
    await consumer.start()
    await producer.start()
    partitions = sorted(await producer.partitions_for(reports))
    consumer.assign([TopicPartition(reports, partition) for partition in partitions])
    await consumer.seek_to_end()
    print("ready", flush=True)
    began, before = time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        taken = 0
        for _ in range(TAKES):
            await asyncio.sleep(1 / TAKES)
            taken += len(await consumer.getmany())
        for _ in range(STAGES if taken else 0):
            await asyncio.gather(*[await producer.send(written, RECORD, KEY, partition) for partition in partitions])
    print((time.process_time() - before) / (time.monotonic() - began), flush=True)
    await producer.stop()
    await consumer.stop()


if __name__ == "__main__":
    broker, reports, written, seconds = sys.argv[1:]
    uvloop.run(main(broker, reports, written, float(seconds)))
