"""Two gateways, a worker and a broker that are killed while devices report; and what must come out even so."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from bench._processes import workers
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish
from tests.gateway.clients import Crowd, Report, join
from tests.gateway.forked import Forked
from tests.gateway.world import report
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.recount import histograms_of, logged
from tests.helpers.workers import send
from tests.stream_app.worlds import COLOURS, HORIZON, KEY, PAGES, SCHEME, Recount, Reports, Tick

PERIODS = 2


def reports_of(random: Random, count: int) -> Iterator[Report]:
    """Good reports of a small world, as devices send them."""
    for _ in range(count):
        page = random.randrange(1 << PAGES).to_bytes(2, "little").hex()
        answers, gap = {"colour": f"{random.randrange(COLOURS):02x}", "page": page}, random.randint(1, HORIZON)
        yield report(SCHEME, random.randrange(PERIODS), gap=f"{gap:04x}", answers=answers)


def endure(
    broker: KafkaBroker,
    topics: Topics,
    directory: Path,
    reports: int,
    clients: int,
    kills: int,
    seed: int = 1,
    say: Callable[[str], None] = print,
) -> None:
    """Send, kill in turn, wait, and compare: every confirmed report is counted once, and the finals are a recount's."""
    kafka, random = KafkaSettings(bootstrap=broker.bootstrap), Random(seed)
    publish(kafka, topics, SCHEME.survey)
    words, reached = ("gateway", "--app", topics.prefix), {"HEARSAY_KAFKA_BOOTSTRAP": kafka.bootstrap}
    pair = [Forked(directory / f"gateway-{number}.log", *words, **reached) for number in range(2)]
    with workers(1, kafka, topics, KEY, directory) as (worker,), pair[0].serving(), pair[1].serving():
        crowd = Crowd([gateway.port for gateway in pair], reports_of(random, reports))
        threads = crowd.start(clients)
        for number in range(kills):
            enough = reports * number // kills // 2
            eventually(partial(crowd.has_taken, enough), 240)
            victim = ("a gateway", "the worker", "the broker")[number % 3]
            say(f"kill -9 of {victim}, after {len(crowd.taken):,} reports")
            if victim == "a gateway":
                gateway = random.choice(pair)
                gateway.kill()
                gateway.start()
            elif victim == "the worker":
                worker.kill()
                worker.start()
            else:
                broker.kill()
                time.sleep(random.uniform(0, 2))
                broker.start()
        join(threads)
        assert not crowd.others and not crowd.late, (crowd.others[:3], len(crowd.late))
        assert len(crowd.taken) == len(crowd.sent) == reports
        for gateway in pair:
            assert gateway.leave() == 0, gateway.log.read_text()
        send(kafka, topics, [Tick(PERIODS - 1)])
        eventually(lambda: len(read_finals(kafka, topics)) >= PERIODS, 240)
        compare(kafka, topics, crowd)
    say(f"{reports:,} reports, each counted once")


def compare(kafka: KafkaSettings, topics: Topics, crowd: Crowd) -> None:
    partitions = logged(kafka, topics)
    expected = Recount.of_logs(partitions)
    finals = read_finals(kafka, topics)
    assert finals == histograms_of(expected)
    on_topic = [event for events in partitions for event in events.values() if isinstance(event, Reports)]
    logged_tokens = {(event.period, row.token) for event in on_topic for row in event.rows}
    assert logged_tokens == {(int(report["period"], 16), int(report["token"], 16)) for report in crowd.taken}
    counted = sum(counts["n", gap] for counts in expected.finals.values() for gap in range(1, HORIZON + 1))
    assert counted == len(logged_tokens)
    assert set(expected.rejects) <= {"repeat"}
