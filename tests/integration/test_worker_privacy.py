"""No true value, memo, device key or device identifier in any topic, log or metric."""

import base64
import csv
import gzip
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench._processes import workers
from memo_store.store import MemoStore
from producers.events import Options
from producers.events.people import People
from producers.files import ColumnMapping
from producers.replay import Replay
from producers.sinks import KafkaSink
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish, read_topic
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import KEY

MakeTopics = Callable[..., Topics]

SECRET = b"the fleet's own planted secret.."
PEOPLE = [f"planted-person-{number:03d}" for number in range(25)]
PLACES = 2000
"""So many that the bits of a value, or of a memo, are a pattern that does not turn up by chance."""
SCHEME = scheme_with(
    of_size(PLACES, "place", mechanism="l-osue"),
    id="private",
    period="1h",
    eps_inf=4,
    eps_1=2,
    clock="source",
    nowcast={"seasons": []},  # many values have nowcasts only if they are asked for
)
QUESTION = SCHEME.questions[0]


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
    kafka_settings: KafkaSettings, fresh_topics: MakeTopics, redis_url: str, tmp_path: Path
) -> None:
    topics = fresh_topics(partitions=2, merge_partitions=1)
    publish(kafka_settings, topics, SCHEME.survey)
    keyring = Keyring(SECRET)
    memos = MemoStore(redis_url).survey(Respondent(SCHEME, keyring))
    sink = KafkaSink(kafka_settings, topics.reports)
    options = Options(ColumnMapping("person", "at", {"place": "place"}), timedelta(hours=1))
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        events = write_events(tmp_path / "events.csv")
        Replay(memos, sink, [events], options, tmp_path / "work", clock_key=KEY).run()
        sink.send(0, "text/plain", b"refused, and so among the dead letters")
        sink.flush()
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 3)
        eventually(lambda: [*read_topic(kafka_settings, topics.deadletters)] != [])
        metrics = worker.page("/metrics").encode()
        worker.leave()
    sink.close()

    filled = [topic.name for topic in topics.all() if not topic.name.endswith(".forecasts")]  # it has none
    published = {name: everything(kafka_settings, name) for name in filled}
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


def everything(kafka: KafkaSettings, topic: str) -> bytes:
    """Keys, values (decompressed) and headers of every record."""
    return b"\n".join(
        part
        for record in read_topic(kafka, topic)
        for part in (record.key or b"", plain(record.value or b""), *(value for _, value in record.headers))
    )


def plain(value: bytes) -> bytes:
    return gzip.decompress(value) if value.startswith(b"\x1f\x8b") else value
