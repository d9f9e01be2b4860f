"""What hostile senders put on a real broker, and what honest devices do not."""

import asyncio
import base64
import csv
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
from aiokafka import AIOKafkaProducer

from memo_store.store import MemoStore
from producers.events import Options
from producers.events.interpreting import People
from producers.files import ColumnMapping
from producers.kafka_sink import KafkaSink
from producers.replay import Replay
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER, FRAME, REPORT
from servers.settings import KafkaSettings
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.counting.state import Position
from stream_app.log.flushes import Output
from tests.helpers.counting import PATIENT, Counting, NewCounting
from tests.helpers.eventually import eventually
from tests.helpers.surveys import of_size, scheme_with
from tests.helpers.traffic import a_row, mischief, single
from tests.stream_app.worlds import KEY, SCHEME, Reports, Tick, wire

Headers = list[tuple[str, bytes | None]]
Payload = tuple[bytes | None, Headers]

PAYLOADS = 4_000
PARTITIONS = 4


def payloads(random: Random) -> Iterator[Payload]:
    """Mutated frames and reports, random bytes, JSON bombs, odd and huge headers, nothing at all."""
    _, frame = wire(Reports(0, tuple(a_row(random, 0, PARTITIONS) for _ in range(10))))
    report = single(frame)
    bombs = [b"[" * 5000, b'{"a":' * 5000, b'{"a":' + b"9" * 5000 + b"}", b'{"a":1,' * 500, b'{"period":1e999}']
    kinds = [kind.encode() for kind in (FRAME, REPORT, CLOCK)]
    for _ in range(PAYLOADS):
        chance = random.random()
        if chance < 0.5:
            yield mutated(random, frame), [(CONTENT_TYPE_HEADER, FRAME.encode())]
        elif chance < 0.65:
            yield mutated(random, report), [(CONTENT_TYPE_HEADER, REPORT.encode())]
        elif chance < 0.8:
            yield random.randbytes(random.randrange(200)), [(CONTENT_TYPE_HEADER, random.choice(kinds))]
        elif chance < 0.85:
            yield random.choice(bombs), [(CONTENT_TYPE_HEADER, random.choice(kinds[1:]))]
        elif chance < 0.9:
            _, content_type, value = mischief(random, 0, 0, PARTITIONS)
            yield value, [(CONTENT_TYPE_HEADER, content_type.encode())]
        else:
            yield random.choice([None, b"", frame]), random.choice(ODD_HEADERS)


ODD_HEADERS: list[Headers] = [
    [],
    [(CONTENT_TYPE_HEADER, None)],
    [(CONTENT_TYPE_HEADER, b"\xff\xfe" * 50)],
    [(CONTENT_TYPE_HEADER, b"x" * 10_000)],
    [(f"h{number}", b"y" * 100) for number in range(50)],
    [("", b""), (CONTENT_TYPE_HEADER, b"")],
]


def mutated(random: Random, data: bytes) -> bytes:
    spoilt = bytearray(data)
    for _ in range(random.randint(1, 6)):
        spoilt[random.randrange(len(spoilt))] = random.randrange(256)
    return bytes(spoilt[: random.randrange(len(spoilt))] if random.random() < 0.2 else spoilt)


async def send_in_bulk(kafka: KafkaSettings, topic: str, logs: list[list[Payload]]) -> None:
    """Whole batches at once: a hundred thousand records in seconds."""
    producer = AIOKafkaProducer(**kafka.client_options(), max_batch_size=1 << 20, max_request_size=4 << 20)
    await producer.start()
    for partition, log in enumerate(logs):
        batch = producer.create_batch()
        for value, headers in log:
            if batch.append(key=None, value=value, timestamp=None, headers=headers) is None:
                await (await producer.send_batch(batch, topic, partition=partition))
                batch = producer.create_batch()
                batch.append(key=None, value=value, timestamp=None, headers=headers)
        await (await producer.send_batch(batch, topic, partition=partition))
    await producer.stop()


def record_of(offset: int, payload: Payload) -> Record:
    value, headers = payload
    text = dict(headers).get(CONTENT_TYPE_HEADER)
    return Record(offset, None if text is None else text.decode("utf-8", "replace"), value)


def expected(logs: list[list[Payload]]) -> tuple[set[str], Counter[str]]:
    """The keys of the dead letters and the rows refused by reason, from the pure counter."""
    letters, refused = set(), Counter[str]()
    for partition, log in enumerate(logs):
        counter = PartitionCounter(partition, PARTITIONS, {"s": SCHEME}.get, KEY)
        for offset, payload in enumerate(log):
            counter.apply(record_of(offset, payload))
        outputs = [item for item in counter.flush() if isinstance(item, Output) and item.topic == "deadletters"]
        letters |= {output.key.decode() for output in outputs}
        refused += sum((Counter(reasons) for reasons in counter.rejects.values()), Counter[str]())
    return letters, refused


def test_hostile_payloads_are_refused_counted_and_kept(new_counting: NewCounting) -> None:
    counting = new_counting(SCHEME, partitions=PARTITIONS, merge_partitions=1)
    random = Random(17)
    logs: list[list[Payload]] = [[] for _ in range(PARTITIONS)]
    with counting.workers(1, *PATIENT) as (worker,):
        for number, (value, headers) in enumerate(payloads(random)):
            logs[number % PARTITIONS].append((value, headers))
        asyncio.run(send_in_bulk(counting.kafka, counting.topics.reports, logs))
        letters, refused = expected(logs)
        assert len({letter.rpartition("/")[0] for letter in letters}) > 0.98 * PAYLOADS, "too many are not hostile"
        counting.send([Reports(0, (a_row(random, 0, 1),)), Tick(0)])
        counting.until_final(1, 240)
        assert worker.leave() == 0
    assert not worker.logged("this worker ends; start it again")
    assert {record.key.decode() for record in counting.read(counting.topics.deadletters)} == letters
    counted = Counter[str]()
    positions = {r.key: r.value for r in counting.read(counting.topics.counting_changelog) if b"position" in r.key}
    for position in map(Position.decode, positions.values()):
        for reasons in position.rejects.values():
            counted += reasons
    assert counted == refused
    letter = counting.read(counting.topics.deadletters)[0]
    assert json.loads(json.dumps({name: value.decode() for name, value in letter.headers}))["reason"] in refused


SECRET = b"the fleet's own planted secret.."
PEOPLE = [f"planted-person-{number:03d}" for number in range(25)]
PLACES = 2000
"""So many that the bits of a value, or of a memo, are a pattern that does not turn up by chance."""
TOLD = scheme_with(
    of_size(PLACES, "place", mechanism="l-osue"),
    id="private",
    period="1h",
    eps_inf=4,
    eps_1=2,
    clock="source",
    nowcast={"seasons": []},  # many values have nowcasts only if they are asked for
)
QUESTION = TOLD.questions[0]


def place_of(person: int) -> int:
    return 61 * person % PLACES


def write_events(path: Path) -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person", "at", "place"])
        for hour in range(3):
            for number, person in enumerate(PEOPLE):
                rows.writerow([person, f"2026-01-01T{hour:02d}:30:00Z", place_of(number)])
    return path


def spellings(secret: bytes) -> Iterator[bytes]:
    yield secret
    yield secret[::-1]
    yield secret.hex().encode()
    yield base64.b64encode(secret).rstrip(b"=")


def test_nothing_that_is_true_of_anybody_leaves_the_devices(
    new_counting: NewCounting, redis_url: str, tmp_path: Path
) -> None:
    counting = new_counting(TOLD, partitions=2, merge_partitions=1)
    topics = counting.topics
    keyring = Keyring(SECRET)
    memos = MemoStore(redis_url).survey(Respondent(TOLD, keyring))
    sink = KafkaSink(counting.kafka, topics.reports)
    options = Options(ColumnMapping("person", "at", {"place": "place"}), timedelta(hours=1))
    with counting.workers() as (worker,):
        events = write_events(tmp_path / "events.csv")
        Replay(memos, sink, KEY, [events], options, tmp_path / "work").run()
        sink.send(0, "text/plain", b"refused, and so among the dead letters")
        sink.flush()
        counting.until_final(3)
        eventually(lambda: counting.read(topics.deadletters) != [])
        metrics = worker.page("/metrics").encode()
        worker.leave()
    sink.close()

    filled = [topic.name for topic in topics.all() if not topic.name.endswith(".forecasts")]  # it has none
    published = {name: everything(counting, name) for name in filled}
    assert all(published.values()), "a topic with nothing in it shows nothing"
    written = {**published, "log": worker.log.read_bytes(), "metrics": metrics}

    values = np.array([place_of(number) for number in range(len(PEOPLE))])
    devices = People(keyring).devices(pa.array(PEOPLE))
    columns = memos.lookup(QUESTION, devices, values, 3)
    planted = [*spellings(SECRET), *(s for person in PEOPLE for s in spellings(person.encode()))]
    planted += [s for device in devices for s in (*spellings(device.tobytes()), str(device).encode())]
    planted += [s for memo in columns for s in spellings(memo.tobytes())]
    assert not [(where, secret) for where, text in written.items() for secret in planted if secret in text]
    one_hot = np.packbits(np.eye(PLACES, dtype=np.uint8)[values], axis=1, bitorder="little")
    sent = written[topics.reports] + written[topics.deadletters]
    assert not [value for value in one_hot for secret in spellings(value.tobytes()) if secret in sent]


def everything(counting: Counting, topic: str) -> bytes:
    """Keys, values (decompressed) and headers of every record."""
    return b"\n".join(
        part
        for record in counting.read(topic)
        for part in (record.key or b"", plain(record.value or b""), *(value for _, value in record.headers))
    )


def plain(value: bytes) -> bytes:
    return gzip.decompress(value) if value.startswith(b"\x1f\x8b") else value
