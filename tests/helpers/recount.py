"""An offline recount of a reports topic: what the finals, the rejects and the dead letters must be.

The reader knows one survey, that of `tests.stream_app.worlds`, and shares nothing with the app but Arrow: it turns what
is on the topic into the words of that world, whose recount counts with dictionaries and sets.
"""

import hashlib
import hmac
import json
from collections import Counter

import numpy as np
import pyarrow as pa

from stream_app.counting import Statistics
from stream_app.finals import Final, FinalKey, NotCounted
from stream_app.kafka import read_topic
from tests.helpers.counting import Counting
from tests.stream_app.worlds import HORIZON, KEY, SCHEME, Event, Garbage, Recount, Reports, Row, Tick
from views.past import Past
from views.results import HISTOGRAMS

LIMIT = 16 << 20  # what a batch may take
TERMS = {"survey": "s", "fingerprint": SCHEME.fingerprint}


def recount(counting: Counting) -> Recount:
    """Count everything on the reports topic again, from its first record to its last."""
    return Recount.of_logs(logged(counting))


def logged(counting: Counting) -> list[dict[int, Event]]:
    """Everything on the reports topic by offset, in each partition; also what decompresses to too much."""
    partitions: list[dict[int, Event]] = [{} for _ in range(counting.topics.partitions)]
    for record in read_topic(counting.kafka.model_copy(update={"max_batch_bytes": 1 << 30}), counting.topics.reports):
        kind = dict(record.headers).get("content-type", b"").decode().removeprefix("application/vnd.hearsay.")
        partitions[record.partition][record.offset] = event_of(kind, record.value or b"")
    return partitions


def event_of(kind: str, value: bytes) -> Event:
    if len(value) > LIMIT:
        return Garbage(b"", "too-large")
    try:
        if kind == "frame+arrow":
            table = pa.ipc.open_stream(value).read_all()
            terms = {key.decode(): text.decode() for key, text in table.schema.metadata.items()}
            columns = (table[name].to_pylist() for name in ("token", "gap", "colour", "page"))
            rows = [Row(t, g, c, int.from_bytes(p, "little")) for t, g, c, p in zip(*columns, strict=True)]
        elif kind == "report+json":
            terms = json.loads(value)
            pages = int.from_bytes(bytes.fromhex(terms["answers"]["page"]), "little")
            rows = [Row(int(terms["token"], 16), int(terms["gap"], 16), int(terms["answers"]["colour"], 16), pages)]
        elif kind == "clock+json":
            return clock_of(json.loads(value), value)
        else:
            return Garbage(value)
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return Garbage(value)
    if not rows:
        return Garbage(value)  # cut off after its head
    for term, reason in (("survey", "unknown-survey"), ("fingerprint", "wrong-fingerprint")):
        if terms[term] != TERMS[term]:
            return Garbage(value, reason, len(rows))
    return Reports(int(terms["period"], 16), tuple(rows))


def clock_of(clock: dict[str, object], value: bytes) -> Event:
    survey, through = str(clock["survey"]), int(str(clock["through"]))
    signed = b"hearsay clock\0" + survey.encode() + b"\0" + through.to_bytes(8, "big", signed=True)
    if clock["mac"] != hmac.new(KEY, signed, hashlib.sha256).hexdigest():
        return Garbage(value, "bad-mac")
    return Tick(through) if survey == "s" else Garbage(value, "unknown-survey")


def finals_of(expected: Recount) -> dict[tuple[str, int], bytes]:
    """The bytes of the finals that must be published for what was recounted."""
    return {("s", final.period): final.encode() for final in _finals(expected)}


def histograms_of(expected: Recount) -> dict[tuple[str, int], bytes]:
    """The bytes of the histograms that must be published for what was recounted."""
    finals, histograms = _finals(expected), {}
    for number, final in enumerate(finals):
        made = HISTOGRAMS.make(Past(SCHEME, finals[max(0, number - HORIZON + 1) : number + 1]))
        assert made is not None
        (message,) = HISTOGRAMS.messages(FinalKey("s", final.period), made)
        histograms["s", final.period] = message.value
    return histograms


def _finals(expected: Recount) -> list[Final]:
    return [
        Final.of(
            SCHEME,
            period,
            statistics_of(counted),
            NotCounted(expected.refused[period], expected.late.get(period, {})),
        )
        for period, counted in expected.finals.items()
    ]


def statistics_of(counted: Counter[tuple[object, ...]]) -> dict[str, Statistics]:
    """A recounted period as the app would have counted it."""
    gaps = sorted(gap for kind, gap, *_ in counted if kind == "n")
    n = np.array([counted["n", gap] for gap in gaps], dtype=np.int64)
    return {
        question.name: Statistics(
            np.array(gaps, dtype=np.uint16),
            n,
            np.array(
                [[counted[question.name, gap, value] for value in range(question.k)] for gap in gaps], dtype=np.int64
            ).reshape(len(gaps), question.k),
            np.array([counted["pages", width] for width in range(question.mechanism.encoding.widths)], dtype=np.int64),
        )
        for question in SCHEME.questions
    }
