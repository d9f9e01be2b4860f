"""Logs that are not as they should be, and surveys that are kept apart, on a real broker."""

import json
import time

import numpy as np
import pytest
from kafka import KafkaAdminClient, KafkaProducer

from bench._processes import WorkerProcess
from protocols.errors import TopicError
from protocols.scheme import Scheme
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER, FRAME, Clock, Frame, encode_clock, encode_frame
from servers.kafka_broker import KafkaBroker
from stream_app.kafka import dead_letters
from stream_app.log.codec import RECORD_BYTES
from tests.helpers import bombs
from tests.helpers.counting import PATIENT, Counting, NewCounting
from tests.helpers.eventually import eventually
from tests.helpers.surveys import of_size, scheme_with
from tests.helpers.topics import configure, cut_log, delete
from tests.stream_app.worlds import KEY, SCHEME, Event, Reports, Row, Tick, wire
from views.results import HISTOGRAMS

EMPTY = 50_000
"""Records without anything in a batch."""


@pytest.fixture
def counting(new_counting: NewCounting) -> Counting:
    return new_counting(SCHEME, partitions=2, merge_partitions=1)


def crowd(period: int, first: int, last: int) -> Reports:
    return Reports(period, tuple(Row(token) for token in range(first, last)))


def shows(worker: WorkerProcess, fault: str) -> bool:
    return f'fault="{fault}"' in worker.page("/metrics")


def test_the_markers_of_transactions_are_skipped_and_their_reports_count_also_of_an_aborted_one(
    counting: Counting,
) -> None:
    """Failure would look like: a worker that ends at the marker, at every start."""
    producer = KafkaProducer(**counting.kafka.client_options(), transactional_id=f"{counting.topics.prefix}-reports")
    producer.init_transactions()
    with counting.workers(1, *PATIENT) as (worker,):
        for end, token in ((producer.commit_transaction, 2), (producer.abort_transaction, 4)):
            producer.begin_transaction()
            content_type, value = wire(Reports(0, (Row(token),)))
            headers = [(CONTENT_TYPE_HEADER, content_type.encode())]
            producer.send(counting.topics.reports, value, headers=headers, partition=0).get(30)
            end()
        producer.close()
        counting.send([Reports(0, (Row(6), Row(1))), Tick(0)])
        counting.until_final(1)
        eventually(lambda: worker.metric("hearsay_lag_records") == 0)
        assert worker.leave() == 0
    assert counting.counted() == [4]


@pytest.mark.long(part="cluster")
def test_a_topic_that_is_deleted_and_made_again_is_not_counted_until_an_operator_accepts_what_was_lost(
    counting: Counting,
) -> None:
    """Failure would look like: reports of the second topic that are taken for ones that were read before."""
    with counting.workers(1, *PATIENT) as (worker,):
        counting.send([crowd(0, 1, 100), crowd(0, 100, 200), Tick(0), crowd(1, 1, 300)])
        eventually(counting.caught_up)
        counting.until_final(1)
        first = counting.finals()
        assert counting.hearsay("topics", "check").returncode == 0
        delete(counting.kafka, counting.topics.reports)
        eventually(lambda: not worker.running)
        assert f"topic {counting.topics.reports} was deleted" in why_it_ended(worker)
        worker.log.write_text("")
        worker.start()
        eventually(lambda: not worker.running)
        said = worker.log.read_text()
        assert f"topic {counting.topics.reports} was deleted: the state" in said
        assert f"hearsay topics create --prefix {counting.topics.prefix} {' '.join(TWO)}" in said.replace("\n", " ")
        assert counting.hearsay("topics", "create", *TWO).returncode == 0
        counting.send([crowd(1, 300, 350), crowd(2, 1, 20)])
        worker.start()
        eventually(lambda: shows(worker, "another"))
        assert worker.running and not worker.ready
        assert worker.metric("hearsay_reports_total") == 0
        refused = counting.hearsay("recover", "--lost", "1000")
        assert refused.returncode == 1 and "stop all workers first" in refused.stderr
        worker.leave()
        checked = counting.hearsay("topics", "check", "--json")
        found = [one["setting"] for one in json.loads(checked.stdout)]
        assert checked.returncode == 1 and found == [f"the log of partition {partition}" for partition in (0, 1)]
        doctor = counting.hearsay("doctor", "--json")
        (broker,) = [one for one in json.loads(doctor.stdout)["findings"] if one["what"] == "broker"]
        assert doctor.returncode == 1 and "deleted and made again" in broker["found"]
        shown = counting.recover()
        assert shown.returncode == 1 and shown.stdout.count("deleted and made again") == 2
        assert counting.recover("--lost", "1000").returncode == 0
        worker.start().wait_until_ready()
        counting.send([Tick(1), Tick(2)])
        counting.until_final(3)
        assert counting.recover().returncode == 0
        assert worker.leave() == 0
    assert counting.finals()["s", 0] == first["s", 0]
    assert counting.counted() == [199, 349, 19]
    assert counting.lost() == ((1, 3, 2000),)


@pytest.mark.long(part="cluster")
def test_a_log_whose_end_was_cut_off_is_recognised_also_after_it_has_grown_again(
    kafka: KafkaBroker, counting: Counting
) -> None:
    """Failure would look like: the reports that took the place of others are taken for those, and not counted."""
    with counting.workers() as (worker,):
        for token in (2, 4, 6):
            counting.send([Reports(0, (Row(token),))])
        eventually(counting.caught_up)
        worker.kill()
        kafka.kill()
        assert cut_log(kafka.data / f"{counting.topics.reports}-0", 1) == 1
        kafka.start()
        assert offsets(counting) == [0]
        for token in (12, 14, 16, 18):
            counting.send([Reports(0, (Row(token),))])
        worker.start()
        eventually(lambda: shows(worker, "cut"))
        worker.leave()
        done = counting.recover("--lost", "0")
        assert done.returncode == 0 and "records from offset 1 to 2 were replaced" in done.stdout
        worker.start().wait_until_ready()
        counting.send([Tick(0)])
        counting.until_final(1)
        assert worker.leave() == 0
    assert counting.counted() == [7], "three that were read before the end was cut off, four after"


@pytest.mark.long(part="cluster")
def test_a_compacted_gap_is_waited_at_until_an_operator_gives_its_records_up(counting: Counting) -> None:
    """Failure would look like: a worker that ends at every start, or a period that lacks reports in silence."""
    soon = {"segment_ms": 100, "min_cleanable_dirty_ratio": 0.01}
    configure(counting.kafka, counting.topics.reports, cleanup_policy="compact", **soon)
    first = [Reports(0, (Row(token),)) for token in (2, 4, 6)]
    send_keyed(counting, [*first, Reports(0, (Row(8),))])
    eventually(lambda: offsets(counting) == [2, 3])
    with counting.workers(1, *PATIENT) as (worker,):
        eventually(lambda: shows(worker, "gap"))
        eventually(lambda: counting.caught_up(through={0: -1, 1: -1}))
        worker.leave()
        done = counting.recover("--lost", "2")
        assert done.returncode == 0 and "offsets 0 to 1 hold no record" in done.stdout
        worker.start().wait_until_ready()
        send_keyed(counting, [Tick(0)])
        counting.until_final(1)
        assert worker.leave() == 0
    assert counting.counted() == [2]
    assert counting.lost() == ((0, 2, 2),)


@pytest.mark.long(part="cluster")
def test_batches_that_would_fill_the_memory_are_refused_and_kept_by_reference(counting: Counting) -> None:
    """Failure would look like: a worker that grows by gigabytes, and is killed for it at every start."""
    batches = [bombs.gzip_bomb(64), *(bombs.bomb(codec, 64 << 20) for codec in (bombs.SNAPPY, bombs.LZ4, bombs.ZSTD))]
    batches += [bombs.header_bomb(1_000_000)] * 40 + [bombs.record_bomb(EMPTY)] * 40
    assert len(batches[0]) < 2 << 20 and len(batches[4]) < 1000
    odd = [bombs.poisoned(), bombs.misplaced(0, 0, 0), bombs.misplaced(1_000_000), bombs.member_bomb(100_000)]
    bombs.send_batches(counting.kafka, counting.topics.reports, 0, [*batches, *odd])
    with counting.workers(1, *PATIENT) as (worker,):
        counting.send([Reports(0, (Row(2), Row(4), Row(3))), Tick(0)])
        counting.until_final(1)
        assert worker.peak_megabytes < 1000
        assert worker.leave() == 0
    assert counting.counted() == [3]
    letters = counting.read(counting.topics.deadletters)
    heads = [dict(letter.headers) for letter in letters]
    first = 44 + 40 * EMPTY
    assert [(head["reason"].decode(), int(head["offset"]), int(head["rows"])) for head in heads] == [
        *(("too-large", offset, 1) for offset in range(44)),
        *(("too-large", 44 + number * EMPTY, EMPTY) for number in range(40)),
        ("undecodable", first, 1),
        ("undecodable", first + 1, 1),  # the first of three is in its place, and no report
        ("undecodable", first + 2, 2),
        ("undecodable", first + 4, 1),
        ("undecodable", first + 5, 1),
    ]
    assert {letter.value for letter in letters[:-1]} == {b""} and len(letters[-1].value) == 100_000
    bombs.send_batches(counting.kafka, counting.topics.named(HISTOGRAMS.name), 0, batches[:1])
    with pytest.raises(TopicError, match="takes more than"):
        counting.finals()


def send_keyed(counting: Counting, events: list[Event]) -> None:
    """Send events to partition 0, each in a segment of its own; reports under one key, but the last. Clocks to both.

    Clocks have a key of their own: with another's, that record would be compacted away, perhaps before it is read.
    """
    producer = KafkaProducer(**counting.kafka.client_options())
    for number, event in enumerate(events):
        content_type, value = wire(event)
        headers = [(CONTENT_TYPE_HEADER, content_type.encode())]
        is_clock = isinstance(event, Tick)
        key = b"clock" if is_clock else b"last" if number == len(events) - 1 else b"reports"
        for partition in range(2 if is_clock else 1):
            producer.send(counting.topics.reports, value, key=key, headers=headers, partition=partition).get(30)
        time.sleep(0.2)
    producer.close()


def offsets(counting: Counting) -> list[int]:
    return [record.offset for record in counting.read(counting.topics.reports) if record.partition == 0]


TWO = ("--partitions", "2", "--merge-partitions", "1")


def why_it_ended(worker: WorkerProcess) -> str:
    """Libraries may log something after it."""
    return str(worker.logged("this worker ends; start it again")[-1]["error"])


@pytest.mark.long(part="cluster")
def test_a_registry_that_is_deleted_ends_the_worker_with_a_sentence(counting: Counting) -> None:
    """Failure would look like: a worker that is ready, knows no new survey, and asks thousands of times a second."""
    with counting.workers(1, *PATIENT) as (worker,):
        counting.send([crowd(0, 1, 100)])
        eventually(counting.caught_up)
        delete(counting.kafka, counting.topics.surveys)
        eventually(lambda: not worker.running)
        assert f"topic {counting.topics.surveys} was deleted" in why_it_ended(worker)
        assert counting.hearsay("topics", "create").returncode == 0
        worker.start()
        eventually(lambda: "the state counts survey 's', which is not published" in worker.log.read_text())
        worker.leave()
        counting.publish(SCHEME)
        assert counting.recover("--survey", "s").returncode == 0
        worker.start().wait_until_ready()
        counting.send([Tick(0)])
        counting.until_final(1)
    assert counting.counted() == [99]


@pytest.mark.long(part="cluster")
def test_the_way_on_after_partitions_were_added_from_its_first_step_to_its_last(counting: Counting) -> None:
    """Failure would look like: a final that lacks the reports of the added partitions, and does not say so."""
    with counting.workers(1, *PATIENT) as (worker,):
        counting.send([crowd(0, 1, 100), Tick(0), crowd(1, 1, 100)])
        counting.until_final(1)
        admin = KafkaAdminClient(**counting.kafka.client_options())
        admin.create_partitions({counting.topics.reports: 4})
        admin.close()
        counting.send([crowd(1, 100, 200), Tick(1)], partitions=4)  # half to the added ones
        eventually(lambda: worker.metric("hearsay_reports_total") == 99 + 99 + 50)
        eventually(lambda: shows(worker, "partitions"))
        assert not worker.ready
        assert worker.leave() == 0
        assert len(counting.finals()) == 1, "partitions that nobody counts close no period"
        worker.start()
        eventually(lambda: not worker.running)
        assert f"topic {counting.topics.reports} has 4 partitions, but its state has 2" in worker.log.read_text()
        delete(counting.kafka, counting.topics.reports)
        assert counting.hearsay("topics", "create", *TWO).returncode == 0
        done = counting.recover("--lost", "25")  # in each of two partitions
        assert done.returncode == 0, done.stderr
        worker.start().wait_until_ready()
        counting.send([crowd(1, 201, 211), Tick(1)])
        counting.until_final(2)
        assert worker.leave() == 0
    assert counting.hearsay("topics", "check").returncode == 0
    assert counting.counted() == [99, 99 + 50 + 10]
    assert sum(loss.reports for loss in counting.lost() if 1 in loss.periods) == 50


@pytest.mark.long(part="kills")
def test_a_running_worker_says_once_that_partitions_were_added_and_counts_the_others(counting: Counting) -> None:
    """Failure would look like: it waits for the state of the added ones, which there is not, a line every second."""
    with counting.workers(1, *PATIENT) as (worker,):
        counting.send([crowd(0, 1, 100)])
        worker.wait_until_ready()
        admin = KafkaAdminClient(**counting.kafka.client_options())
        admin.create_partitions({counting.topics.reports: 4})
        admin.close()
        before = len(read_again(worker, counting))
        eventually(lambda: len(read_again(worker, counting)) > before)  # its group is divided anew
        counting.send([crowd(0, 100, 200)])
        eventually(lambda: worker.metric("hearsay_reports_total") == 199)
        (said,) = worker.logged("partitions were added")
        assert "operations.md" in str(said["hint"])
        assert worker.logged("waiting for the broker") == []
        offsets = read_again(worker, counting)[-1]["next_offsets"]
        assert isinstance(offsets, dict) and set(offsets) == {"0", "1"}
        assert worker.leave() == 0


def read_again(worker: WorkerProcess, counting: Counting) -> list[dict[str, object]]:
    """Each time that a worker began to read its partitions of the reports topic."""
    return [line for line in worker.logged("reading") if line["topic"] == counting.topics.reports]


SIZES = {"small": 4, "large": 20_000}
SIZED = {
    name: scheme_with(of_size(size, mechanism="l-grr"), id=name, eps_inf=4, eps_1=2, horizon=2, clock="source")
    for name, size in SIZES.items()
}
COMPACT = {"cleanup_policy": "compact"}
TOO_SMALL = 50_000
"""A limit in bytes: the counter of the large survey takes more."""
NOISY = scheme_with(of_size(4, mechanism="l-grr"), id="noisy", eps_inf=4, eps_1=2, horizon=2, clock="source")


def frame(scheme: Scheme, period: int, first: int, last: int) -> bytes:
    tokens = np.arange(first, last + 1, dtype=np.uint64)
    answers = {"a": (tokens % 4).astype(scheme.questions[0].mechanism.encoding.answer.dtype)}
    gaps = np.ones(len(tokens), dtype=np.uint16)
    return encode_frame(Frame(scheme.survey.id, scheme.fingerprint, period, tokens, gaps, answers), scheme)


@pytest.mark.long(part="cluster")
def test_a_survey_whose_record_the_broker_refuses_is_quarantined_and_exact_once_it_goes_on(
    new_counting: NewCounting,
) -> None:
    """Failure would look like: a worker that ends with all its surveys, or a count that is wrong after it went on."""
    counting = new_counting(*SIZED.values(), partitions=1, merge_partitions=1)

    def send(period: int, first: int, last: int) -> None:
        counting.put((0, FRAME, frame(scheme, period, first, last)) for scheme in SIZED.values())

    def close(period: int) -> None:
        counting.put((0, CLOCK, encode_clock(Clock(name, period), KEY)) for name in SIZED)

    with counting.workers(1, *PATIENT) as (worker,):
        worker.wait_until_ready()
        configure(counting.kafka, counting.topics.counting_changelog, **COMPACT, max_message_bytes=TOO_SMALL)
        send(0, 1, 50)
        eventually(lambda: worker.metric("hearsay_survey_quarantined") == 1 or not worker.running)
        send(0, 40, 99)
        close(0)
        eventually(lambda: ("small", 0) in counting.finals() or not worker.running)
        (said,) = worker.logged("a survey is quarantined")
        assert said["survey"] == "large" and "refuses the state record count/0/counter/large/0" in said["why"]
        refused = counting.hearsay("recover", "--survey", "large")
        assert refused.returncode == 1 and "stop all workers first" in refused.stderr
        assert worker.leave() == 0
        configure(counting.kafka, counting.topics.counting_changelog, **COMPACT, max_message_bytes=RECORD_BYTES)
        doctor = counting.hearsay("doctor")
        assert doctor.returncode == 1 and "large is quarantined" in doctor.stdout
        assert "not quarantined: other" in counting.hearsay("recover", "--survey", "other").stderr
        worker.start().wait_until_ready()
        eventually(lambda: worker.metric("hearsay_survey_quarantined") == 1)  # a restart does not try again
        assert worker.leave() == 0
        assert counting.recover("--survey", "large").returncode == 0
        assert counting.hearsay("recover").returncode == 0
        worker.start().wait_until_ready()
        send(1, 1, 30)
        close(1)
        counting.until_final(4)
        assert worker.metric("hearsay_survey_quarantined") == 0
        assert worker.leave() == 0
    assert counting.counted("small") == counting.counted("large") == [99, 30]


@pytest.mark.long(part="cluster")
def test_dead_letters_that_are_too_large_are_cut_and_say_so(new_counting: NewCounting) -> None:
    """Failure would look like: one record of noise from anybody, and no worker counts any more."""
    counting = new_counting(NOISY, partitions=1, merge_partitions=1)
    configure(counting.kafka, counting.topics.deadletters, cleanup_policy="delete", max_message_bytes=20_000)
    anybody = KafkaProducer(
        **counting.kafka.client_options(), compression_type="gzip", max_request_size=2 * RECORD_BYTES
    )
    sizes = [RECORD_BYTES + 1, 30_000, 100]  # more than a record may have, than the broker takes, and an ordinary one
    with counting.workers(1, *PATIENT) as (worker,):
        worker.wait_until_ready()
        for size in sizes:
            letters = np.random.default_rng(size).integers(48, 50, size, dtype=np.uint8).tobytes()
            anybody.send(
                counting.topics.reports, letters, partition=0, headers=[(CONTENT_TYPE_HEADER, letters[:70_000])]
            )
            anybody.flush()
        late = frame(NOISY, 0, 1, 4000)  # so it is a dead letter of the survey
        noise = np.random.default_rng(1).bytes(40_000)
        counting.put([(0, CLOCK, encode_clock(Clock("noisy", 0), KEY)), (0, FRAME, noise), (0, FRAME, late)])
        eventually(lambda: len(list(dead_letters(counting.kafka, counting.topics, set()))) == 5 or not worker.running)
        assert worker.running and worker.metric("hearsay_survey_quarantined") == 0
        assert worker.leave() == 0
    anybody.close()
    # In the order of the refused records. A letter that is cut may come after others of its flush: it is sent again.
    letters = sorted(
        dead_letters(counting.kafka, counting.topics, set()), key=lambda letter: int(letter.key.split("/")[1])
    )
    assert [letter.size for letter in letters][:3] == sizes
    assert [letter.is_cut for letter in letters] == [True, True, False, True, True]
    assert letters[-1].survey == "noisy"
    assert all(letter.value for letter in letters)
    assert worker.logged("a dead letter is lost") == []
    assert len(counting.read(counting.topics.deadletters)) == 5
