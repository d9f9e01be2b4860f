"""Kills of workers and of runners at random moments leave every sink equal to the finals, and these to a recount."""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random

import pytest

from bench._processes import ServerProcess, workers
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, Topics, publish
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.recount import histograms_of, recount
from tests.helpers.workers import send
from tests.stream_app.worlds import KEY, SCHEME, Reports, Row, Tick
from tests.views.places import parquet_content, postgresql_content, sqlite_content
from views.runner import backfill
from views.sinks import open_sink

PERIODS, SEED = 8, 36
LAST_SECONDS = 300.0


@pytest.mark.integration
@pytest.mark.xdist_group("kafka")
@pytest.mark.long(part="kills")
def test_every_sink_is_equal_to_the_finals_after_kills_of_workers_and_runners(
    kafka_settings: KafkaSettings,
    fresh_topics: Callable[..., Topics],
    database: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Failure would look like: rows that are there twice or not at all, or a period that no sink gets any more."""
    topics, random = fresh_topics(partitions=2, merge_partitions=1), Random(SEED)
    sinks = [f"sqlite:{tmp_path}/all.sqlite", f"parquet:{tmp_path}/all", database("killed")]
    monkeypatch.setenv("HEARSAY_SINKS", sinks[0])  # the others are filled by `hearsay views` alone
    monkeypatch.setenv("HEARSAY_KAFKA_BOOTSTRAP", kafka_settings.bootstrap)
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", topics.prefix)
    publish(kafka_settings, topics, SCHEME.survey)
    options = [word for sink in ("topics", *sinks) for word in ("--to", sink)]
    runner = ServerProcess(tmp_path / "views.log", 0, "-m", "hearsay", "views", *options).start()
    with workers(2, kafka_settings, topics, KEY, tmp_path) as group, ExitStack() as ending:
        ending.callback(runner.kill)
        group[0].wait_until_ready()
        for period in range(PERIODS):
            rows = tuple(Row(token, 1 + token % 3, token % 3, token) for token in range(1, 100 + random.randrange(100)))
            send(kafka_settings, topics, [Reports(period, rows), Tick(period)])
            time.sleep(random.uniform(0, 4))
            for victim in random.sample([*group, runner], 2):
                victim.kill()
                time.sleep(random.uniform(0, 1))
                victim.start()

        def reached() -> list[int]:
            found = []
            for sink in sinks:
                with closing(open_sink(sink)) as opened:
                    found.append(opened.complete().get("s", -1))
            return found

        eventually(lambda: reached() == [PERIODS - 1] * len(sinks), LAST_SECONDS)
        eventually(lambda: len(read_finals(kafka_settings, topics)) == PERIODS, LAST_SECONDS)
    assert read_finals(kafka_settings, topics) == histograms_of(recount(kafka_settings, topics))
    with closing(open_sink(f"sqlite:{tmp_path}/anew.sqlite")) as anew:
        assert backfill(KafkaMessages(kafka_settings, topics), anew) == PERIODS
    expected = sqlite_content(tmp_path / "anew.sqlite")
    assert len(expected) == PERIODS
    assert sqlite_content(tmp_path / "all.sqlite") == expected
    assert parquet_content(tmp_path / "all") == expected
    assert postgresql_content(database("killed")) == expected
