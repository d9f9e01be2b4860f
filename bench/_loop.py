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

from stream_app.faust_app.overrides.consumer import GATHER_SECONDS, LONG_POLL_SECONDS

STAGES = 3
"""A flush has tokens, then counters, then positions: each is confirmed before the next is sent ..."""
KEY, RECORD = b"bare", bytes(600)
"""... in records of about this size."""
WRITE_SECONDS = 5
"""A worker writes what trickles after so long, and takes it several times a second."""


async def main(broker: str, reports: str, written: str, seconds: float) -> None:
    wait = int(1000 * LONG_POLL_SECONDS)
    consumer = AIOKafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False, fetch_max_wait_ms=wait)
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
        for _ in range(int(WRITE_SECONDS / GATHER_SECONDS)):
            taken += len(await consumer.getmany())
            await asyncio.sleep(GATHER_SECONDS)
        for _ in range(STAGES if taken else 0):
            await asyncio.gather(*[await producer.send(written, RECORD, KEY, partition) for partition in partitions])
    print((time.process_time() - before) / (time.monotonic() - began), flush=True)
    await producer.stop()
    await consumer.stop()


if __name__ == "__main__":
    broker, reports, written, seconds = sys.argv[1:]
    uvloop.run(main(broker, reports, written, float(seconds)))
