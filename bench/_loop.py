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

from stream_app.faust_app.overrides.consumer import LONG_POLL_SECONDS
from stream_app.faust_app.overrides.gathering import FEW_BYTES, MOST_SECONDS

STAGES = 3
"""A flush has tokens, then counters, then positions: each is confirmed before the next is sent ..."""
KEY, RECORD = b"bare", bytes(600)
"""... in records of about this size."""
WRITE_SECONDS = 5
"""A worker writes what trickles after so long, and takes it every second, as long as there is something to take."""


async def main(broker: str, reports: str, written: str, seconds: float) -> None:
    options = {"fetch_max_wait_ms": int(1000 * LONG_POLL_SECONDS), "fetch_min_bytes": FEW_BYTES}
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
        for _ in range(WRITE_SECONDS):
            few = len(await consumer.getmany())
            await asyncio.sleep(MOST_SECONDS)
            consumer._fetcher._fetch_max_wait_ms = int(1000 * (MOST_SECONDS if few else LONG_POLL_SECONDS))
            taken += few
        for _ in range(STAGES if taken else 0):
            await asyncio.gather(*[await producer.send(written, RECORD, KEY, partition) for partition in partitions])
    print((time.process_time() - before) / (time.monotonic() - began), flush=True)
    await producer.stop()
    await consumer.stop()


if __name__ == "__main__":
    broker, reports, written, seconds = sys.argv[1:]
    uvloop.run(main(broker, reports, written, float(seconds)))
