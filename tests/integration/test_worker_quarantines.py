"""Records that a real broker refuses: one survey is quarantined, and the rest goes on."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kafka import KafkaProducer

from bench._processes import workers
from producers.sinks import KafkaSink
from protocols.scheme import Scheme
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER, FRAME, Clock, Frame, encode_clock, encode_frame
from servers.settings import KafkaSettings
from stream_app.kafka import DeadLetters, KafkaMessages, Topics, publish, read_topic
from stream_app.log.codec import RECORD_BYTES
from tests.helpers.command_line import hearsay, recover
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.surveys import of_size, scheme_with
from tests.helpers.topics import configure
from tests.helpers.workers import PATIENT
from tests.stream_app.worlds import KEY
from views.reading import Results

SIZES = {"small": 4, "large": 20_000}
SIZED = {
    name: scheme_with(of_size(size, mechanism="l-grr"), id=name, eps_inf=4, eps_1=2, horizon=2, clock="source")
    for name, size in SIZES.items()
}
COMPACT = {"cleanup_policy": "compact"}
TOO_SMALL = 50_000
"""A limit in bytes: the counter of the large survey takes more."""
NOISY = scheme_with(of_size(4, mechanism="l-grr"), id="noisy", eps_inf=4, eps_1=2, horizon=2, clock="source")


def counted(kafka: KafkaSettings, topics: Topics, survey: str) -> list[int | None]:
    return [final.n for final in Results(KafkaMessages(kafka, topics)).histograms(survey)]


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
    for scheme in SIZED.values():
        publish(kafka_settings, topics, scheme.survey)
    sink = KafkaSink(kafka_settings, topics.reports)

    def send(period: int, first: int, last: int) -> None:
        for scheme in SIZED.values():
            sink.send(0, FRAME, frame(scheme, period, first, last))
        sink.flush()

    def close(period: int) -> None:
        for name in SIZED:
            sink.send(0, CLOCK, encode_clock(Clock(name, period), KEY))
        sink.flush()

    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        worker.wait_until_ready()
        configure(kafka_settings, topics.counting_changelog, **COMPACT, max_message_bytes=TOO_SMALL)
        send(0, 1, 50)
        eventually(lambda: worker.metric("hearsay_survey_quarantined") == 1 or not worker.running)
        send(0, 40, 99)
        close(0)
        eventually(lambda: ("small", 0) in read_finals(kafka_settings, topics) or not worker.running)
        (said,) = worker.logged("a survey is quarantined")
        assert said["survey"] == "large" and "refuses the state record count/0/counter/large/0" in said["why"]
        refused = hearsay(kafka_settings, topics, "recover", "--survey", "large")
        assert refused.returncode == 1 and "stop all workers first" in refused.stderr
        assert worker.leave() == 0
        configure(kafka_settings, topics.counting_changelog, **COMPACT, max_message_bytes=RECORD_BYTES)
        doctor = hearsay(kafka_settings, topics, "doctor")
        assert doctor.returncode == 1 and "large is quarantined" in doctor.stdout
        assert "not quarantined: other" in hearsay(kafka_settings, topics, "recover", "--survey", "other").stderr
        worker.start().wait_until_ready()
        eventually(lambda: worker.metric("hearsay_survey_quarantined") == 1)  # a restart does not try again
        assert worker.leave() == 0
        assert recover(kafka_settings, topics, "--survey", "large").returncode == 0
        assert hearsay(kafka_settings, topics, "recover").returncode == 0
        worker.start().wait_until_ready()
        send(1, 1, 30)
        close(1)
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 4 or not worker.running)
        assert worker.metric("hearsay_survey_quarantined") == 0
        assert worker.leave() == 0
    sink.close()
    assert counted(kafka_settings, topics, "small") == counted(kafka_settings, topics, "large") == [99, 30]


@pytest.mark.long(part="cluster")
def test_dead_letters_that_are_too_large_are_cut_and_say_so(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """Failure would look like: one record of noise from anybody, and no worker counts any more."""
    topics = fresh_topics(partitions=1, merge_partitions=1)
    publish(kafka_settings, topics, NOISY.survey)
    configure(kafka_settings, topics.deadletters, cleanup_policy="delete", max_message_bytes=20_000)
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
        late = Clock("noisy", 0)
        sink.send(0, CLOCK, encode_clock(late, KEY))
        sink.send(0, FRAME, np.random.default_rng(1).bytes(40_000))
        sink.send(0, FRAME, frame(NOISY, 0, 1, 4000))  # late, so it is a dead letter of the survey
        sink.close()
        eventually(lambda: len(list(DeadLetters(kafka_settings, topics))) == 5 or not worker.running)
        assert worker.running and worker.metric("hearsay_survey_quarantined") == 0
        assert worker.leave() == 0
    anybody.close()
    # In the order of the refused records. A letter that is cut may come after others of its flush: it is sent again.
    letters = sorted(DeadLetters(kafka_settings, topics), key=lambda letter: int(letter.key.split("/")[1]))
    assert [letter.size for letter in letters][:3] == sizes
    assert [letter.is_cut for letter in letters] == [True, True, False, True, True]
    assert letters[-1].survey == "noisy"
    assert all(letter.value for letter in letters)
    assert worker.logged("a dead letter is lost") == []
    assert len(list(read_topic(kafka_settings, topics.deadletters))) == 5
