"""Records that a broker refuses because of what came in, or of how many surveys there are: the worker goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from string import ascii_lowercase

import numpy as np
import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from lab.worker_process import WorkerProcess, workers
from producers.sinks import KafkaSink
from protocols.scheme import Scheme
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER, FRAME, Clock, Frame, encode_clock, encode_frame
from servers.settings import KafkaSettings
from stream_app.kafka import DeadLetters, Topics, publish, read_topic
from stream_app.log.codec import RECORD_BYTES
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.surveys import of_size, scheme_with
from tests.helpers.workers import PATIENT
from tests.integration.test_worker_quarantines import counted
from tests.stream_app.worlds import KEY

NAMES = ["".join(Random(number).choices(ascii_lowercase, k=100)) for number in range(30)]  # a broker compresses names
SCHEMES = {
    name: scheme_with(of_size(4, mechanism="l-grr"), id=name, eps_inf=4, eps_1=2, horizon=2, clock="source")
    for name in NAMES
}
LOWERED = 1500
"""The limit in bytes: any record of one survey takes less, and the position of thirty more."""


class Limits:
    """Changes how large the records of a topic may be."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._admin = KafkaAdminClient(**kafka.client_options())

    def allow(self, topic: str, policy: str, size: int) -> None:
        configs = {"cleanup.policy": policy, "max.message.bytes": str(size)}
        self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs)])

    def close(self) -> None:
        self._admin.close()


def frame(scheme: Scheme, first: int, last: int) -> bytes:
    tokens = np.arange(first, last + 1, dtype=np.uint64)
    answers = {"a": (tokens % 4).astype(scheme.questions[0].mechanism.encoding.answer.dtype)}
    gaps = np.ones(len(tokens), dtype=np.uint16)
    return encode_frame(Frame(scheme.survey.id, scheme.fingerprint, 0, tokens, gaps, answers), scheme)


@pytest.mark.long(part="cluster")
def test_a_worker_whose_position_is_refused_goes_on_and_nothing_is_counted_wrong(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """Failure would look like: a worker that ends at every flush, or reports that a crash after it counts twice."""
    topics = fresh_topics(partitions=1, merge_partitions=1)
    for scheme in SCHEMES.values():
        publish(kafka_settings, topics, scheme.survey)
    limits, sink = Limits(kafka_settings), KafkaSink(kafka_settings, topics.reports)

    def send(first: int, last: int) -> None:
        for scheme in SCHEMES.values():
            sink.send(0, FRAME, frame(scheme, first, last))
        sink.flush()

    def goes_on_until(what: Callable[[], bool], worker: WorkerProcess) -> None:
        eventually(lambda: what() or not worker.running)
        assert worker.running

    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        worker.wait_until_ready()
        limits.allow(topics.counting_changelog, "compact", LOWERED)
        send(1, 20)
        goes_on_until(lambda: worker.metric("hearsay_position_refused") == 1, worker)
        counted_once = worker.metric("hearsay_reports_total")  # not 0 if a flush came between the first few surveys
        assert counted_once < 20 * len(NAMES)
        for name in NAMES[:10]:
            sink.send(0, CLOCK, encode_clock(Clock(name, 0), KEY))
        sink.flush()
        goes_on_until(lambda: len(read_finals(kafka_settings, topics)) == 10, worker)
        assert worker.metric("hearsay_reports_total") == counted_once  # the others can still come again
        worker.kill()
        limits.allow(topics.counting_changelog, "compact", RECORD_BYTES)
        worker.start().wait_until_ready()
        send(11, 30)
        for name in NAMES:
            sink.send(0, CLOCK, encode_clock(Clock(name, 0), KEY))
        sink.flush()
        goes_on_until(lambda: len(read_finals(kafka_settings, topics)) == 30, worker)
        assert worker.metric("hearsay_position_refused") == worker.metric("hearsay_survey_quarantined") == 0
        assert worker.leave() == 0
    sink.close()
    limits.close()
    said, *_ = worker.logged("the position is refused, and everything else goes on")  # again if it lost its partition
    assert "refuses the state record count/0/position" in str(said["why"]) and said["partition"] == 0
    assert [counted(kafka_settings, topics, name) for name in NAMES] == [[20]] * 10 + [[30]] * 20


@pytest.mark.long(part="cluster")
def test_dead_letters_that_are_too_large_are_cut_and_say_so(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """Failure would look like: one record of noise from anybody, and no worker counts any more."""
    topics = fresh_topics(partitions=1, merge_partitions=1)
    scheme = SCHEMES[NAMES[0]]
    publish(kafka_settings, topics, scheme.survey)
    limits = Limits(kafka_settings)
    limits.allow(topics.deadletters, "delete", 20_000)
    anybody = KafkaProducer(
        **kafka_settings.client_options(), compression_type="gzip", max_request_size=2 * RECORD_BYTES
    )
    sizes = [RECORD_BYTES + 1, 30_000, 100]  # more than a record may have, than the broker takes, and an ordinary one
    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        worker.wait_until_ready()
        for size in sizes:
            letters = np.random.default_rng(size).integers(48, 50, size, dtype=np.uint8).tobytes()
            anybody.send(topics.reports, letters, partition=0, headers=[(CONTENT_TYPE_HEADER, letters[:70_000])])
            anybody.flush()
        sink = KafkaSink(kafka_settings, topics.reports)
        late = Clock(NAMES[0], 0)
        sink.send(0, CLOCK, encode_clock(late, KEY))
        sink.send(0, FRAME, np.random.default_rng(1).bytes(40_000))
        sink.send(0, FRAME, frame(scheme, 1, 4000))  # late, so it is a dead letter of the survey
        sink.close()
        eventually(lambda: len(list(DeadLetters(kafka_settings, topics))) == 5 or not worker.running)
        assert worker.running and worker.metric("hearsay_survey_quarantined") == 0
        assert worker.leave() == 0
    anybody.close()
    limits.close()
    # In the order of the refused records. A letter that is cut may come after others of its flush: it is sent again.
    letters = sorted(DeadLetters(kafka_settings, topics), key=lambda letter: int(letter.key.split("/")[1]))
    assert [letter.size for letter in letters][:3] == sizes
    assert [letter.is_cut for letter in letters] == [True, True, False, True, True]
    assert letters[-1].survey == NAMES[0]
    assert all(letter.value for letter in letters)
    assert worker.logged("a dead letter is lost") == []
    assert len(list(read_topic(kafka_settings, topics.deadletters))) == 5
