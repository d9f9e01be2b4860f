"""What we use of Faust, mode, aiokafka and kafka-python without being promised it: all of it is still there.

If another version is installed, these tests name what it no longer has, and what that was for. No broker is needed.
"""

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FunctionType

import aiokafka.consumer.consumer
import faust
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import Fetcher, PartitionRecords
from aiokafka.record.memory_records import _MemoryRecordsPy
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Producer
from kafka import KafkaAdminClient

import stream_app
import stream_app.faust_app.overrides

LIBRARIES = {"faust", "mode", "aiokafka", "kafka"}
DECISION = Path(__file__).parents[3] / "docs" / "decisions" / "0006-what-we-changed-in-faust.md"
OVERRIDES = stream_app.faust_app.overrides.__name__


@dataclass(frozen=True)
class Used:
    """A name of a library that we use although it may change without notice."""

    owner: object  # a class, or an object whose attributes are made when it is
    name: str
    used_to: str

    def complaint(self) -> str:
        """What is wrong, in a sentence; empty if nothing is."""
        declared = [vars(cls).get("__annotations__", {}) for cls in getattr(self.owner, "__mro__", ())]
        if hasattr(self.owner, self.name) or any(self.name in names for names in declared):
            return ""
        return f"{self.owner!r} no longer has {self.name}, which we used to {self.used_to}"


async def _unconnected() -> tuple[AIOKafkaConsumer, AIOKafkaProducer]:
    address = "127.0.0.1:1"
    consumer, producer = AIOKafkaConsumer(bootstrap_servers=address), AIOKafkaProducer(bootstrap_servers=address)
    await consumer.stop()
    await producer.stop()
    return consumer, producer


@cache
def used() -> list[Used]:
    consumer, producer = asyncio.run(_unconnected())
    fetched = PartitionRecords(TopicPartition("t", 0), None, [], 0, None, None, True, 0)
    app = faust.App("unconnected", broker="kafka://127.0.0.1:1", autodiscover=False)
    return [
        # app.py
        Used(faust.App, "_create_directories", "have no data directory made"),
        # batches.py
        Used(fetcher, "PartitionRecords", "account for every offset of a fetch"),
        Used(fetcher, "MemoryRecords", "weigh a batch before it is opened"),
        Used(PartitionRecords, "_unpack_records", "account for every offset of a fetch"),
        Used(PartitionRecords, "_consumer_record", "give records their leader epoch"),
        Used(fetched, "_records", "go through the batches of a fetch"),
        Used(fetched, "_check_crcs", "go through the batches of a fetch"),
        Used(fetched, "_tp", "go through the batches of a fetch"),
        Used(fetched, "next_fetch_offset", "say where to fetch on"),
        Used(_MemoryRecordsPy(b""), "_next_slice", "weigh a batch before it is opened"),
        Used(_MemoryRecordsPy, "_cache_next", "go on to the next batch"),
        # opening.py
        Used(aiokafka.consumer.consumer, "Fetcher", "open large batches in a thread"),
        Used(Fetcher, "_proc_fetch_request", "have a rebalance discard what is being opened"),
        # leader_epochs.py
        Used(KafkaAdminClient, "_manager", "ask the leaders about their epochs"),
        Used(KafkaAdminClient, "_async_get_leader_for_partitions", "ask the leaders about their epochs"),
        # app.py, its consumer
        Used(AIOKafkaConsumerThread, "_create_worker_consumer", "shorten its long polls"),
        Used(consumer, "_fetch_max_wait_ms", "shorten its long polls"),
        Used(Consumer, "_new_consumer_thread", "have our consumer thread made instead of Faust's"),
        Used(Consumer, "_drain_messages", "read in batches"),
        Used(Consumer, "_get_active_partitions", "fetch from the partitions that are not paused"),
        Used(Consumer, "_getmany", "fetch records"),
        Used(Consumer, "_to_message", "make the message in which a batch travels to its agent"),
        Used(Consumer, "_commit", "set the group's offsets to what the state contains"),
        Used(Consumer, "perform_seek", "read on at the offsets of the state, and not at the group's"),
        Used(app.topics, "_tp_index", "find the queue of the agent that reads a partition"),
        # app.py, its producer
        Used(Producer, "_settings_extra", "make the producer idempotent"),
        Used(Producer, "_new_producer", "change the producer before it starts"),
        Used(producer, "_message_accumulator", "keep records for as long as the broker is away"),
        Used(producer._message_accumulator, "_batch_ttl", "keep records for as long as the broker is away"),
        Used(producer._message_accumulator, "_append_batch", "go on after a batch that the broker refuses"),
        Used(producer._message_accumulator, "_txn_manager", "go on after a batch that the broker refuses"),
    ]


def test_the_libraries_still_have_every_name_that_we_use() -> None:
    assert not [complaint for name in used() if (complaint := name.complaint())]


def test_the_decision_names_every_one_of_them() -> None:
    missing = {name.name for name in used() if f"`{name.name}`" not in DECISION.read_text()}
    assert not missing


def test_kafka_python_still_logs_its_connection_errors_where_we_listen() -> None:
    name = importlib.import_module("kafka.net.connection").log.name
    assert name.startswith("kafka.net"), (
        f"kafka-python logs connection errors as {name}, no longer below kafka.net, where servers/kafka_clients.py "
        "listened to explain why a cluster cannot be reached"
    )


def overrides() -> Iterator[type]:
    """The classes of ours in the overrides."""
    for found in pkgutil.iter_modules(stream_app.faust_app.overrides.__path__, f"{OVERRIDES}."):
        module = importlib.import_module(found.name)
        yield from (cls for _, cls in inspect.getmembers(module, inspect.isclass) if cls.__module__ == module.__name__)


@pytest.mark.parametrize("cls", list(overrides()))
def test_an_override_takes_what_the_method_it_replaces_takes(cls: type) -> None:
    for name, method in vars(cls).items():
        if not isinstance(method, FunctionType) or name == "__init__":
            continue
        for base in (base for base in cls.__mro__ if base.__module__.partition(".")[0] in LIBRARIES):
            replaced = vars(base).get(name)
            if isinstance(replaced, FunctionType):
                ours, theirs = (list(inspect.signature(one).parameters) for one in (method, replaced))
                assert ours == theirs, f"{base.__module__}.{base.__qualname__}.{name} takes {theirs}, and ours {ours}"
