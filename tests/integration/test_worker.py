"""`hearsay worker` on a real broker: reports in, finals out, whatever happens to the process."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition

from bench._processes import workers
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import MAX_ROWS
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, Topics, publish
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.recount import histograms_of, recount
from tests.helpers.workers import PATIENT, send
from tests.stream_app.worlds import CALENDAR, KEY, SCHEME, Reports, Row, Tick, by_calendar
from views.reading import Results
from views.results import MOBILITY

MakeTopics = Callable[..., Topics]


@pytest.fixture
def topics(fresh_topics: MakeTopics, kafka_settings: KafkaSettings) -> Topics:
    made = fresh_topics(partitions=3, merge_partitions=2)
    publish(kafka_settings, made, SCHEME.survey)
    return made


def crowd(period: int, size: int) -> Reports:
    return Reports(period, tuple(Row(token, token % 3 + 1, token % 3, token % 1024) for token in range(1, size)))


def test_a_worker_that_is_killed_carries_on_and_one_that_is_asked_to_leave_leaves(
    kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    """Failure would look like: a report lost, or counted again, after the kill; or a device twice in a week."""
    before, after = [crowd(0, 2000), crowd(1, 1000), Tick(0), crowd(1, 1500)], [crowd(1, 3000), crowd(2, 500), Tick(2)]
    flagged = by_calendar([*before, *after])
    publish(kafka_settings, topics, CALENDAR.survey)
    send(kafka_settings, topics, before)
    send(kafka_settings, topics, flagged[:4], CALENDAR)
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 2)
        worker.kill()
        send(kafka_settings, topics, after)
        send(kafka_settings, topics, flagged[4:], CALENDAR)
        worker.start().wait_until_ready()
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 6)
        eventually(lambda: worker.metric("hearsay_reports_total") > 0)  # once the position is written, too
        eventually(lambda: worker.metric("hearsay_lag_records") == 0)
        assert worker.leave() == 0
        assert len(worker.logged("leaving")) == 1, "every line of the log is JSON"
    expected, finals = recount(kafka_settings, topics), read_finals(kafka_settings, topics)
    assert {key: final for key, final in finals.items() if key.survey == "s"} == histograms_of(expected)
    units, came = dict[str, tuple[int, int]](), [set(range(1, size)) for size in (2000, 3000, 500)]
    for report in Results(KafkaMessages(kafka_settings, topics)).read(MOBILITY, "c"):
        for window in report.windows:
            everybody = set().union(*came[window.first : window.last + 1])
            assert window.visitors is not None and window.visitors.value == len(everybody)
            assert window.new is not None
            assert window.new.value == len(everybody.difference(*came[: window.first]))
            units[window.kind] = window.first, window.last
    assert units == {"period": (2, 2), "week": (0, 1), "month so far": (1, 2), "ever": (0, 2)}


def test_surveys_on_the_wall_clock_are_closed_at_end_plus_grace(
    kafka_settings: KafkaSettings, fresh_topics: MakeTopics, tmp_path: Path
) -> None:
    """Workers close periods, so what is sent before there is one is in time, however long anything takes."""
    topics = fresh_topics(partitions=3, merge_partitions=2)
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    terms = SCHEME.survey.model_dump() | {"clock": "wall", "start": now, "period": "6s", "grace": "1s"}
    wall = Scheme(Survey.model_validate(terms))
    publish(kafka_settings, topics, wall.survey)
    send(kafka_settings, topics, [crowd(0, 100), crowd(1, 50)], wall)
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        eventually(lambda: len(read_finals(kafka_settings, topics)) >= 2)
        assert datetime.now(UTC) >= wall.survey.bounds(1)[1] + wall.survey.grace
        assert worker.leave() == 0
    finals = Results(KafkaMessages(kafka_settings, topics)).histograms("s")
    assert [final.n for final in finals[:2]] == [99, 49]


@pytest.mark.long(part="cluster")
def test_a_worker_waits_for_a_broker_that_is_away_goes_on_and_leaves_also_without_it(
    kafka: KafkaBroker, kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    send(kafka_settings, topics, [crowd(0, 500)])
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        worker.wait_until_ready()
        kafka.stop()
        before, began = len(worker.log.read_text().splitlines()), time.monotonic()
        with workers(1, kafka_settings, topics, KEY, tmp_path / "late") as (late,):  # starts with no broker at all
            eventually(lambda: late.logged("waiting for the broker") != [])
            kafka.start()
            send(kafka_settings, topics, [crowd(0, 1000), Tick(0)])
            eventually(lambda: len(read_finals(kafka_settings, topics)) == 1)
            assert worker.running and late.running
        lines, seconds = len(worker.log.read_text().splitlines()) - before, time.monotonic() - began
        assert lines < 100 + 5 * seconds, "the libraries repeat the same lines, dozens of times a second"
        send(kafka_settings, topics, [crowd(1, 500)])
        kafka.stop()
        assert worker.leave() == 0
    kafka.start()
    assert [final.n for final in Results(KafkaMessages(kafka_settings, topics)).histograms("s")] == [999]


def test_records_that_the_log_no_longer_has_are_named_and_are_in_the_shortfall_of_their_periods(
    kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    send(kafka_settings, topics, [crowd(0, 100)] * 3)
    admin = KafkaAdminClient(**kafka_settings.client_options())
    admin.delete_records({TopicPartition(topics.reports, 1): 2})
    admin.close()
    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        send(kafka_settings, topics, [Tick(0)])
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 1)
        eventually(lambda: worker.metric("hearsay_lost_reports") == 2 * MAX_ROWS)
        assert worker.leave() == 0
    (entry,) = worker.logged("records are missing")
    assert "partition 1: offsets 0 to 1 are no longer in the log" in str(entry["what"])
    assert str(entry["what"]).endswith("of these periods: s 0, s 1")
    live = Results(KafkaMessages(kafka_settings, topics)).live("s")
    assert live is not None and live.lost == ((0, 2, 2 * MAX_ROWS),)
