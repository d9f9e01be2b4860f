"""A broker that refuses a record of one survey as too large: that survey is quarantined, and the other one goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from lab.worker_process import workers
from producers.sinks import KafkaSink
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish
from tests.helpers.command_line import recover
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.surveys import of_size, scheme_with
from tests.helpers.workers import PATIENT
from tests.integration.test_worker_quarantines import counted
from tests.stream_app.worlds import KEY

SIZES = {"small": 4, "large": 20_000}
SCHEMES = {
    name: scheme_with(of_size(size, mechanism="l-grr"), id=name, eps_inf=4, eps_1=2, horizon=2, clock="source")
    for name, size in SIZES.items()
}
ALLOWED, LOWERED = 8 << 20, 50_000
"""The limit of the topic in bytes: the counter of the large survey takes more than the lower one."""


def frame(scheme: Scheme, period: int, first: int, last: int) -> bytes:
    tokens = np.arange(first, last + 1, dtype=np.uint64)
    answers = {"a": (tokens % 4).astype(scheme.questions[0].mechanism.encoding.answer.dtype)}
    gaps = np.ones(len(tokens), dtype=np.uint16)
    return encode_frame(Frame(scheme.survey.id, scheme.fingerprint, period, tokens, gaps, answers), scheme)


def test_a_survey_whose_record_the_broker_refuses_is_quarantined_and_exact_once_it_goes_on(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """Failure would look like: a worker that ends with all its surveys, or a count that is wrong after it went on."""
    topics = fresh_topics(partitions=1, merge_partitions=1)
    for scheme in SCHEMES.values():
        publish(kafka_settings, topics, scheme.survey)
    admin, sink = KafkaAdminClient(**kafka_settings.client_options()), KafkaSink(kafka_settings, topics.reports)

    def allow(size: int) -> None:
        configs = {"cleanup.policy": "compact", "max.message.bytes": str(size)}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topics.counting_changelog, configs)])

    def send(period: int, first: int, last: int) -> None:
        for scheme in SCHEMES.values():
            sink.send(0, FRAME, frame(scheme, period, first, last))
        sink.flush()

    def close(period: int) -> None:
        for name in SCHEMES:
            sink.send(0, CLOCK, encode_clock(Clock(name, period), KEY))
        sink.flush()

    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        worker.wait_until_ready()
        allow(LOWERED)
        send(0, 1, 50)
        eventually(lambda: worker.metric("hearsay_survey_quarantined") == 1 or not worker.running)
        send(0, 40, 99)
        close(0)
        eventually(lambda: ("small", 0) in read_finals(kafka_settings, topics) or not worker.running)
        (said,) = worker.logged("a survey is quarantined")
        assert said["survey"] == "large" and "refuses the state record count/0/counter/large/0" in said["why"]
        assert worker.leave() == 0
        allow(ALLOWED)
        assert recover(kafka_settings, topics, "--survey", "large").returncode == 0
        worker.start().wait_until_ready()
        send(1, 1, 30)
        close(1)
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 4 or not worker.running)
        assert worker.metric("hearsay_survey_quarantined") == 0
        assert worker.leave() == 0
    sink.close()
    admin.close()
    assert counted(kafka_settings, topics, "small") == counted(kafka_settings, topics, "large") == [99, 30]
