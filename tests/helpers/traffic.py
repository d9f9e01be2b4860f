"""A reports topic as it really is: reports, the same ones again, late ones, wrong ones, and what was never a report."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, REPORT, Clock, Frame, decode_frame, encode_clock, encode_frame
from tests.helpers.frames import encode_report
from tests.stream_app.worlds import COLOURS, HORIZON, KEY, PAGES, SCHEME, Reports, Row, Tick, scheme, wire

Record = tuple[int, str, bytes]  # partition, content type, value

OTHER_TERMS = scheme("minimum: 5,")
UNPUBLISHED = Scheme(SCHEME.survey.model_copy(update={"id": "unpublished"}))


def traffic(random: Random, reports: int, periods: int, partitions: int, rows: int = 500) -> Iterator[Record]:
    """About so many good reports over so many periods, in frames of about so many rows, and everything else between."""
    frames = max(1, reports // periods // rows)
    for period in range(periods):
        sent: list[Record] = []
        for _ in range(frames):
            partition = random.randrange(partitions)
            # Some devices are a period ahead: their reports are taken already.
            ahead = int(random.random() < 0.1 and period + 1 < periods)
            good = Reports(period + ahead, tuple(a_row(random, partition, partitions) for _ in range(rows)))
            sent.append((partition, *wire(good)))
            yield sent[-1]
            if random.random() < 0.3:
                yield random.choice(sent)  # a retry
            if random.random() < 0.3:
                yield mischief(random, period, partition, partitions)
        for partition in range(partitions):
            yield (partition, *wire(Tick(period)))


def a_row(random: Random, partition: int, partitions: int) -> Row:
    token = random.randrange(1, 1 << 60) * partitions + partition
    return Row(token, random.randint(1, HORIZON), random.randrange(COLOURS), random.randrange(1 << PAGES))


def mischief(random: Random, period: int, partition: int, partitions: int) -> Record:
    """One record with something wrong about it, or in it, or an odd one that is right."""
    rows = tuple(a_row(random, partition, partitions) for _ in range(random.randint(1, 20)))
    spoilt = (replace(rows[0], gap=HORIZON + 1), replace(rows[0], colour=COLOURS), replace(rows[0], pages=1 << PAGES))
    _, frame = wire(Reports(period, rows))
    return random.choice(
        [
            (partition, *wire(Reports(period, (*rows[1:], random.choice(spoilt))))),
            ((partition + 1) % partitions, *wire(Reports(period, rows))),
            (partition, *wire(Reports(period - 1, rows) if period else Reports(period + 9, rows))),
            (partition, *wire(Reports(period + 3, rows))),
            (partition, *wire(Reports(period, rows), OTHER_TERMS)),
            (partition, FRAME, renamed(frame)),
            (partition, REPORT, single(frame)),
            (partition, REPORT, b"{}"),
            (partition, FRAME, frame[: len(frame) // 2]),
            (partition, FRAME, random.randbytes(random.randrange(300))),
            (partition, "text/plain", frame),
            (partition, CLOCK, encode_clock(Clock("s", period + 5), b"not the operator's key")),
            (partition, CLOCK, encode_clock(Clock("unpublished", period), KEY)),
            (partition, *wire(Tick(period - 1))),
        ]
    )


def single(frame: bytes) -> bytes:
    """The first row of a frame as a JSON report."""
    return encode_report(read(frame).take(slice(0, 1)), SCHEME)


def renamed(frame: bytes) -> bytes:
    """A frame for a survey that nobody published."""
    return encode_frame(replace(read(frame), survey="unpublished"), UNPUBLISHED)


def read(frame: bytes) -> Frame:
    decoded = decode_frame(frame, {"s": SCHEME}.get)
    assert isinstance(decoded, Frame)
    return decoded
