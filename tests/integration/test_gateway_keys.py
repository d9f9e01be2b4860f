"""Two gateways in front of a real broker: when a period is closed, their files name nobody."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from gateway.door import credential_line
from gateway.service import ChainedKeys, StateFile
from hearsay.serving.kafka_log import FollowedRegistry, KafkaLog
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish, read_topic
from tests.gateway.test_token_keys import (
    DAY,
    HOUR,
    PEOPLE,
    PERIODS,
    bearer,
    files_in,
    header,
    named,
    senders,
    tokens_in,
    type_in,
)
from tests.gateway.world import Moment, report, scheme, serving
from tests.helpers.eventually import eventually


def test_who_copies_the_files_of_two_gateways_after_a_period_was_closed_names_nobody(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """Failure would look like: a retry that is no repeat, or files that name a report. Control: a kept link."""
    topics, now = fresh_topics(partitions=3, merge_partitions=1), Moment(time.time())
    of = scheme(start=f"{datetime.fromtimestamp(now(), UTC):%Y-%m-%dT%H:%M:%SZ}")
    publish(kafka_settings, topics, of.survey)
    states = [tmp_path / name / "gateway.state" for name in ("first", "second")]
    (tmp_path / "tokens").write_text("".join(credential_line(name, "device") for name in PEOPLE))
    assert type_in("new", "--state", str(states[0])).exit_code == 0
    kept = [type_in("export", "--state", str(states[0])).stdout_bytes]
    assert type_in("import", "--state", str(states[1]), given=kept[0]).exit_code == 0
    registry = FollowedRegistry(kafka_settings, topics)
    keys = [ChainedKeys(StateFile(state), registry.schemes, now, registry.published_at) for state in states]
    logs = [KafkaLog(kafka_settings, topics) for _ in states]
    with (
        serving(logs[0], [of], now, senders(keys[0])) as first,
        serving(logs[1], [of], now, senders(keys[1])) as second,
    ):
        eventually(lambda: all(log.connected for log in logs))
        for period in range(PERIODS):
            for person, name in enumerate(PEOPLE):
                served = [first, second][(person + period) % 2 :] + [first, second][: (person + period) % 2]
                for gateway in served:  # the second one is a retry
                    assert gateway.post_one(report(of, period), **bearer(name)).status == 201
            now.value += DAY
            for each in keys:
                each.tend()
        now.value += 2 * HOUR
        for each in keys:
            each.tend()
    tokens = tokens_in((record.value for record in read_topic(kafka_settings, topics.reports)), of)
    assert [len(tokens[header(of, period)]) for period in range(PERIODS)] == [len(PEOPLE)] * PERIODS
    assert named(files_in(tmp_path), tokens) == 0
    assert named(kept, tokens) == len(PEOPLE) * PERIODS
