"""Two gateways, a worker and a broker that are killed while devices report; and what must come out even so."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

from servers.kafka_broker import KafkaBroker
from tests.gateway.clients import Crowd, Report, join
from tests.gateway.forked import Forked
from tests.gateway.world import report
from tests.helpers.counting import Counting
from tests.helpers.eventually import eventually
from tests.helpers.recount import histograms_of, logged
from tests.stream_app.worlds import COLOURS, HORIZON, PAGES, SCHEME, Recount, Reports, Tick

PERIODS = 2


def reports_of(random: Random, count: int) -> Iterator[Report]:
    """Good reports of a small world, as devices send them."""
    for _ in range(count):
        page = random.randrange(1 << PAGES).to_bytes(2, "little").hex()
        answers, gap = {"colour": f"{random.randrange(COLOURS):02x}", "page": page}, random.randint(1, HORIZON)
        yield report(SCHEME, random.randrange(PERIODS), gap=f"{gap:04x}", answers=answers)


def endure(
    broker: KafkaBroker,
    counting: Counting,
    reports: int,
    clients: int,
    kills: int,
    seed: int = 1,
    say: Callable[[str], None] = print,
) -> None:
    """Send, kill in turn, wait, and compare: every confirmed report is counted once, and the finals are a recount's."""
    random = Random(seed)
    counting.publish(SCHEME)
    words, reached = ("gateway", "--app", counting.topics.prefix), {"HEARSAY_KAFKA_BOOTSTRAP": broker.bootstrap}
    pair = [Forked(counting.directory / f"gateway-{number}.log", *words, **reached) for number in range(2)]
    with counting.workers() as (worker,), pair[0].serving(), pair[1].serving():
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
                worker.start().wait_until_ready()  # while it starts, it ends if the broker does
            else:
                broker.kill()
                time.sleep(random.uniform(0, 2))
                broker.start()
        join(threads)
        assert not crowd.others and not crowd.late, (crowd.others[:3], len(crowd.late))
        assert len(crowd.taken) == len(crowd.sent) == reports
        for gateway in pair:
            assert gateway.leave() == 0, gateway.log.read_text()
        counting.send([Tick(PERIODS - 1)])
        counting.until_final(PERIODS, 240)
        compare(counting, crowd)
    say(f"{reports:,} reports, each counted once")


def compare(counting: Counting, crowd: Crowd) -> None:
    partitions = logged(counting)
    expected = Recount.of_logs(partitions)
    assert counting.finals() == histograms_of(expected)
    on_topic = [event for events in partitions for event in events.values() if isinstance(event, Reports)]
    logged_tokens = {(event.period, row.token) for event in on_topic for row in event.rows}
    assert logged_tokens == {(int(report["period"], 16), int(report["token"], 16)) for report in crowd.taken}
    counted = sum(counts["n", gap] for counts in expected.finals.values() for gap in range(1, HORIZON + 1))
    assert counted == len(logged_tokens)
    assert set(expected.rejects) <= {"repeat"}
