"""The decisions of the gateway, without a server: canonical texts, and frames that count like single reports."""

import json
from random import Random

import pytest

from gateway.door import Rate, RateLimit
from gateway.door.canonical import Forms
from gateway.door.gathering import cut_rows
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import FRAME, REPORT, Frame, ReportRow
from protocols.wire.report import read_report
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from tests.gateway.world import KEY, SCHEME, report

SMP = Scheme(
    parse_survey(
        "{id: smp, start: 2026-01-01T00:00:00Z, period: 1d, one_in: 2, eps: 1, horizon: 7, "
        "attributes: [{name: answers, values: [x, y]}, {name: survey, values: [x, y, z]}]}"
    )
)
KNOWN = {"buttons": SCHEME, "smp": SMP}


def text(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def row(body: bytes) -> ReportRow:
    read = read_report(body, KNOWN.get)
    assert isinstance(read, ReportRow), read
    return read


def learnt(*records: dict[str, object]) -> Forms:
    forms = Forms()
    for record in records:
        read = row(text(record))
        forms.learn(read, KNOWN[read.header.survey])
    return forms


EXAMPLES = [
    report(),
    report(SMP, answers={"answers": "01"}),
    report(SMP, answers={"survey": "02"}),
    report(SMP, answers={}),
    report(of_period=3),
]


def test_whatever_is_changed_in_a_text_it_is_read_as_strict_reading_does_or_left_to_it() -> None:
    random, forms = Random(3), learnt(*EXAMPLES)
    assert [forms.read(text(each)) for each in EXAMPLES] == [row(text(each)) for each in EXAMPLES]
    known = 0
    for _ in range(5000):
        changed = bytearray(text(random.choice(EXAMPLES)))
        for _ in range(random.randint(1, 3)):
            changed[random.randrange(len(changed))] = random.choice(b'0123456789abcdefABCDEF"{}:, \\\n\xff')
        read = forms.read(bytes(changed))
        if read is not None:
            known += 1
            assert read == row(bytes(changed))
    assert known > 100


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ":")])
def test_an_array_of_reports_of_one_form_becomes_their_frame(separators: tuple[str, str]) -> None:
    records = [
        report(gap=f"000{number % 7 + 1}", answers={"colour": "02", "page": f"{number:02x}01"}) for number in range(50)
    ]
    forms = learnt(records[0])
    array = b"[" + separators[0].encode().join(map(text, records)) + b"]"
    lines = b"\n".join(map(text, records))
    for body, in_lines in ((array, False), (lines, True), (lines + b"\n", True)):
        assert forms.read_many(body, not in_lines) is None
        frame = forms.read_many(body, in_lines)
        assert isinstance(frame, Frame)
        assert [f"{token:016x}" for token in frame.tokens.tolist()] == [record["token"] for record in records]
        assert frame.gaps.tolist() == [int(str(record["gap"]), 16) for record in records]
        assert frame.answers["page"].tolist() == [[number, 1] for number in range(50)]


def test_an_array_with_anything_else_in_it_is_left_to_strict_reading() -> None:
    random, good = Random(4), [text(report()) for _ in range(5)]
    forms = learnt(report())
    for body in (
        b",".join(good),
        b"[" + b"\n".join(good) + b"]",
        b"[" + b",".join(good),
        b"[]",
        b"",
        b"[" + good[0][:-1] + b"]",
        b"[," + good[0] + good[1] + b"]",
        b"[#," + good[0] + b"]",
    ):
        assert forms.read_many(body, False) is None
    whole = b"[" + b",".join(good) + b"]"
    assert forms.read_many(whole, False) is not None
    for _ in range(500):
        changed = bytearray(whole)
        changed[random.randrange(len(changed))] = random.choice(b'ABCDEF"{}:, \\\nxyz\xff')
        frame = forms.read_many(bytes(changed), False)
        assert frame is None or bytes(changed) == whole


def test_forms_are_bounded_in_number() -> None:
    forms = Forms()
    for period in range(500):
        forms.learn(row(text(report(of_period=period))), SCHEME)
    assert forms.read(text(report(of_period=499))) is not None
    assert forms.read(text(report(of_period=0))) is None


def test_frames_of_gathered_reports_count_like_the_reports_one_by_one() -> None:
    random, partitions = Random(2), 3
    records = [
        report(
            gap=f"{random.randint(0, 8):04x}",
            answers={
                "colour": f"0{random.randrange(4)}",
                "page": random.randrange(1 << 11).to_bytes(2, "little").hex(),
            },
        )
        for _ in range(400)
    ]
    rows = [row(text(record)) for record in records]
    cut = cut_rows(rows, SCHEME, partitions)
    for partition in range(partitions):
        together, alone = (PartitionCounter(partition, partitions, KNOWN.get, KEY) for _ in range(2))
        frames = [value for to, value in cut.encoded(SCHEME) if to == partition]
        for offset, value in enumerate(frames):
            together.apply(Record(offset, FRAME, value))
        mine = [record for record in records if int(record["token"], 16) % partitions == partition]
        refused: dict[str, int] = {}
        for offset, record in enumerate(mine):
            for reason, count in alone.apply(Record(offset, REPORT, text(record))).refused.items():
                refused[reason] = refused.get(reason, 0) + count
        counts = [counter.open_periods["buttons", 0].counts.snapshot() for counter in (together, alone)]
        assert {name: (s.gaps.tolist(), s.n.tolist(), s.supports.tolist()) for name, s in counts[0].items()} == {
            name: (s.gaps.tolist(), s.n.tolist(), s.supports.tolist()) for name, s in counts[1].items()
        }
        assert not any(together.rejects.values())
        judged = [cut.refused.get(place) for place, record in enumerate(records) if record in mine]
        found = {str(reason): judged.count(reason) for reason in set(judged) if reason is not None}
        assert found == {str(reason): count for reason, count in refused.items()} != {}


def test_rate_limits_forget_the_longest_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.door.credentials.MOST_KEPT", 100)
    limit = RateLimit(Rate(1, 1))
    for number in range(1000):
        assert limit.wait(str(number), 0.0) == 0
    assert [limit.wait(name, 0.5) for name in ("999", "900", "899")] == [0.5, 0.5, 0]
