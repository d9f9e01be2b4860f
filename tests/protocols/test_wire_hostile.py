"""Any bytes of any structure, as any record: a frame or a reason, never an exception, never much memory or time."""

import json
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from protocols.wire import (
    CLOCK,
    FRAME,
    REPORT,
    ROW_REASONS,
    Clock,
    Frame,
    Reason,
    Reject,
    decode_clock,
    decode_frame,
    decode_report,
    encode_clock,
    encode_frame,
    row_faults,
)
from protocols.wire.arrow import CONTINUATION, END, MAX_MESSAGE
from protocols.wire.header import named
from protocols.wire.report import MAX_REPORT_BYTES
from tests.helpers.appetite import within_the_rule
from tests.helpers.frames import encode_report, make_scheme, random_frame, stream

KEY = b"operator's key"
SCHEME = make_scheme(3, 20, 300, solution="spl", horizon=7)
LOOKUP = {SCHEME.survey.id: SCHEME}.get
LARGE = [0, 1, 7, 8, 255, 65_537, (1 << 31) - 1, (1 << 32) - 8, (1 << 63) - 1, (1 << 64) - 1]

LETTERS = [b'"', b"{", b"[", b",", b"\\", b"\\ud800", b"NaN", b"1e999", b"\xff", b"null"]
MUTATIONS = ("flip", "overwrite", "number", "cut", "drop", "repeat", "move", "letters")


def mutate(how: str, chance: random.Random, data: bytearray) -> None:
    place = chance.randrange(len(data))
    if how == "flip":
        data[place] ^= 1 << chance.randrange(8)
    elif how == "overwrite":
        data[place] = chance.randrange(256)
    elif how == "number":
        size = chance.choice([2, 4, 8])
        place = place // size * size
        data[place : place + size] = chance.choice(LARGE).to_bytes(8, "little")[:size]
    elif how == "cut":
        del data[place:]
    elif how == "drop":
        del data[place : place + chance.choice([1, 4, 8, 64])]
    elif how == "repeat":
        data[place:place] = data[place : place + chance.choice([1, 8, 64, 512])]
    elif how == "move":
        other, length = chance.randrange(len(data)), chance.choice([1, 4, 8, 32])
        data[place : place + length] = data[other : other + length]
    else:
        data[place : place + 1] = chance.choice(LETTERS)


DECODERS: dict[str, tuple[bytes, Callable[[bytes], Frame | Clock | Reject]]] = {
    FRAME: (encode_frame(random_frame(SCHEME, 5), SCHEME), lambda data: decode_frame(data, LOOKUP)),
    REPORT: (encode_report(random_frame(SCHEME, 1), SCHEME), lambda data: decode_report(data, LOOKUP)),
    CLOCK: (encode_clock(Clock(SCHEME.survey.id, 3), KEY), lambda data: decode_clock(data, KEY)),
}
"""By kind of record: a good one, and how it is read."""


def mutated(original: bytes, count: int, seed: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(original)
        for how in chance.choices(MUTATIONS, k=chance.choice([1, 1, 2, 5])):
            if data:
                mutate(how, chance, data)
        yield bytes(data)


@pytest.mark.parametrize(("kind", "count"), [(FRAME, 8_000), (REPORT, 5_000), (CLOCK, 5_000)])
def test_mutated_records_are_judged_and_never_raise(kind: str, count: int) -> None:
    original, decode = DECODERS[kind]
    accepted = refused = 0
    for data in mutated(original, count, seed=1):
        result = decode(data)
        if isinstance(result, Reject):
            assert result.detail
            assert len(result.detail) < 300
            assert 1 <= result.rows <= 5
            refused += 1
        else:
            accepted += 1
            if isinstance(result, Frame):
                assert_whole(result)
    assert accepted + refused == count
    assert min(accepted, refused) > count / 1000, "mutations that are all alike test nothing"


def assert_whole(frame: Frame) -> None:
    """What was accepted can be judged row by row and counted."""
    assert 1 <= len(frame) <= 5
    assert all(len(column) == len(frame) for column in (frame.gaps, *frame.answers.values()))
    fine = frame.take(row_faults(frame, SCHEME, 0, 1) == 0)
    for name, column in fine.answers.items():
        question = SCHEME.question(name)
        groups = np.asarray(fine.gaps - 1)
        assert question.mechanism.encoding.count(column, groups, 7).shape == (7, question.k)


@pytest.mark.parametrize("kind", DECODERS)
def test_every_beginning_of_a_record_is_judged(kind: str) -> None:
    original, decode = DECODERS[kind]
    whole = [length for length in range(len(original) + 1) if not isinstance(decode(original[:length]), Reject)]
    ends = {FRAME: [len(original) - 8, len(original)]}  # the mark of a stream's end may be left out
    assert whole == ends.get(kind, [len(original)])


def test_a_row_with_several_faults_is_refused_for_the_first() -> None:
    """So that a refusal has the same reason wherever it is counted."""
    frame = random_frame(SCHEME, 3)
    nobody, never = np.zeros(3, dtype=np.uint64), np.zeros(3, dtype=np.uint16)
    for fault, bad in (
        ("bad-token", replace(frame, tokens=nobody, gaps=never)),
        ("bad-gap", replace(frame, gaps=never)),
    ):
        wrong = {name: np.full_like(column, 0xFF) for name, column in frame.answers.items()}
        codes = row_faults(replace(bad, answers=wrong), SCHEME, 0, 1)
        assert [ROW_REASONS[code - 1] for code in codes] == [fault] * 3


RECORD: dict[str, Any] = json.loads(DECODERS[CLOCK][0])
CHANGES: list[dict[str, Any]] = [
    {"through": -2}, {"through": 1 << 32}, {"through": True}, {"through": 3.0}, {"through": "3"}, {"survey": 1},
    {"survey": "\ud800"}, {"survey": "Buttons"}, {"mac": None}, {"mac": ""}, {"mac": "\ud800"}, {"more": 1},
]  # fmt: skip
CLOCKS = {
    Reason.BAD_MAC: [json.dumps(RECORD | c).encode() for c in ({"through": 4}, {"survey": "t"}, {"mac": "0" * 64})],
    Reason.UNDECODABLE: [
        *(json.dumps(RECORD | change).encode() for change in CHANGES),
        *(b"", b"{}", b"[]", b"\xff", b'{"survey":"a","survey":"b","through":1,"mac":""}'),
    ],
    Reason.TOO_LARGE: [b" " * 5000],  # not even parsed
}


@pytest.mark.parametrize("reason", CLOCKS)
def test_nothing_is_closed_without_the_key_or_by_what_is_no_clock_record(reason: Reason) -> None:
    for data in CLOCKS[reason]:
        reject = decode_clock(data, KEY)
        assert isinstance(reject, Reject) and reject.reason is reason, data


TERMS = {"survey": SCHEME.survey.id, "fingerprint": SCHEME.fingerprint, "period": "00000000"}


class Flat:
    """A flatbuffer in the making, of which parts may be referred to by many others."""

    def __init__(self) -> None:
        self.data = bytearray(8)

    def table(self, fields: int) -> list[int]:
        """A table with all of its fields, of 8 bytes each. Its own place, and theirs."""
        self.data += bytes(-len(self.data) % 8)
        self.data += struct.pack(f"<HH{fields}H", 4 + 2 * fields, 8 + 8 * fields, *range(8, 8 + 8 * fields, 8))
        self.data += bytes(-len(self.data) % 8)
        start, vtable = len(self.data), 4 + 2 * fields + -(4 + 2 * fields) % 8
        self.data += struct.pack("<ii", vtable, 0) + bytes(8 * fields)
        return [start, *range(start + 8, start + 8 + 8 * fields, 8)]

    def vector(self, count: int) -> list[int]:
        """A vector of references. Its own place, and theirs."""
        self.data += bytes(-len(self.data) % 4) + struct.pack("<I", count) + bytes(4 * count)
        start = len(self.data) - 4 * count
        return [start - 4, *range(start, len(self.data), 4)]

    def text(self, data: bytes) -> int:
        self.data += bytes(-len(self.data) % 4) + struct.pack("<I", len(data)) + data + b"\x00"
        return len(self.data) - len(data) - 5

    def refer(self, place: int, target: int) -> None:
        struct.pack_into("<I", self.data, place, target - place)

    def message(self) -> bytes:
        whole = bytes(self.data) + bytes(-len(self.data) % 8)
        return CONTINUATION + struct.pack("<i", len(whole)) + whole


def schema_that_repeats(entries: int, text: bytes) -> bytes:
    """A schema with so many entries of metadata, whose values are all the same text."""
    flat = Flat()
    message, version, kind, header, *_ = flat.table(4)
    flat.refer(0, message)
    struct.pack_into("<h", flat.data, version, 4)
    flat.data[kind] = 1
    schema, *places = flat.table(3)
    flat.refer(header, schema)
    listed, *slots = flat.vector(entries)
    flat.refer(places[2], listed)
    references = []
    for number, slot in enumerate(slots):
        entry, key, value = flat.table(2)
        flat.refer(slot, entry)
        flat.refer(key, flat.text(f"{number}".encode()))
        references.append(value)
    repeated = flat.text(text)
    for place in references:
        flat.refer(place, repeated)
    empty, *slots = flat.vector(0)
    flat.refer(places[1], empty)
    return flat.message()


def frame_that_shares(scheme: Any, rows: int) -> bytes:
    """A frame whose answers are all the same bytes: those of its last column."""
    data = encode_frame(random_frame(scheme, rows), scheme)
    at = data.index(struct.pack("<qqqq", 0, 0, 0, 8 * rows))  # the buffers of the tokens
    changed = bytearray(data)
    last = at + 32 * (1 + len(scheme.questions)) + 16
    for column in range(2, 1 + len(scheme.questions)):
        place = at + 32 * column + 16
        changed[place : place + 16] = changed[last : last + 16]
    return bytes(changed)


def written(schema: pa.Schema, rows: int = 1, options: pa.ipc.IpcWriteOptions | None = None, batches: int = 1) -> bytes:
    """A stream of batches of zeros."""
    columns = [pa.array(np.zeros(rows, dtype=np.uint8))] * len(schema)
    return stream([pa.record_batch(columns, schema=schema)] * batches, options)


def frames() -> Iterator[tuple[str, bytes]]:
    for columns in (0, 1, 256, 257, 5000):
        schema = pa.schema([(f"{number}", pa.uint8()) for number in range(columns)], metadata=TERMS)
        yield f"{columns} columns", written(schema)
    for keys in (0, 256, 257, 20_000):
        yield f"{keys} keys", written(pa.schema([("token", pa.uint8())], metadata={f"{n}": "" for n in range(keys)}))
    yield "a long key", written(pa.schema([("token", pa.uint8())], metadata={"k" * 60_000: "v"}))
    yield "a long name", written(pa.schema([("n" * 60_000, pa.uint8())], metadata=TERMS))
    plain = pa.schema([("token", pa.uint8())], metadata=TERMS)
    for codec in ("zstd", "lz4"):
        options = pa.ipc.IpcWriteOptions(compression=codec)
        yield f"a body compressed by {codec}", written(plain, 50_000_000, options)
    yield "many rows", written(plain, 4 << 20)[: 4 << 20]
    yield "many batches", written(plain, 1, batches=10_000)
    deep = pa.uint8()
    for _ in range(60):
        deep = pa.list_(deep)
    nested = pa.schema([("token", deep)], metadata=TERMS)
    yield "nested columns", nested.serialize().to_pybytes() + END
    words = pa.array(["a"]).dictionary_encode()
    batch = pa.record_batch([words] * 300, [f"{number}" for number in range(300)])
    yield "dictionaries", stream([batch])
    for text in (b"t" * 50_000, b"t" * 50_000 + "\U0001f600".encode(), b"t" * 1000 + "\U0001f600".encode()):
        yield f"texts of {len(text)} bytes", schema_that_repeats(256, text) * 2
    yield "entries that end nowhere", schema_that_repeats(256, b"")[:-64].ljust(MAX_MESSAGE, b"\xff")


def reports() -> Iterator[tuple[str, bytes]]:
    size = MAX_REPORT_BYTES // 4
    head = json.dumps({**TERMS, "token": "0" * 16, "gap": "0001"})[:-1] + ', "answers": '
    contents = {
        "empty objects": "[" + "{}," * (size // 3) + "{}]",
        "empty lists": "[" + "[]," * (size // 3) + "[]]",
        "small objects": "[" + '{"a":{}},' * (size // 9) + "0]",
        "keys": "{" + ",".join(f'"{number:x}":0' for number in range(size // 9)) + "}",
        "the same key": "{" + '"a":0,' * (size // 6) + '"a":0}',
        "floats": "[" + "1e9," * (size // 4) + "0]",
        "long integers": "[" + ("9" * 4000 + ",") * (size // 4001) + "0]",
        "an integer too long": "9" * size,
        "infinite": "1e999",
        "texts": "[" + '"é",' * (size // 5) + "0]",
        "a wide text": '"' + "a" * (size - 10) + '\U0001f600"',
        "escapes": '"' + "\\u00e9" * (size // 6) + '"',
        "nesting of lists": "[" * size,
        "nesting of objects": '{"a":' * (size // 5),
        "nesting that ends": "[" * 900 + "]" * 900,
    }
    for what, content in contents.items():
        yield what, (head + content + "}").encode()
        yield f"{what}, alone", content.encode()
        yield f"{what}, as a clock", f'{{"survey":"s","through":{content},"mac":""}}'.encode()
    yield "a key twice at the end", ("{" + '"a":0,' * 40_000 + '"a":0}').encode()


def test_frames_of_any_structure_are_refused_with_memory_and_time_in_proportion_to_their_size() -> None:
    for what, data in frames():
        with within_the_rule(len(data), what):
            assert isinstance(decode_frame(data, LOOKUP), Reject), what
            named(FRAME, data)


def test_texts_that_many_entries_share_are_not_copied_for_each_and_not_kept() -> None:
    """Failure would look like: gigabytes, as what was read of the last 256 heads is kept."""
    tokens = pa.schema([("token", pa.uint8())]).serialize().to_pybytes()
    heads = [schema_that_repeats(250, b"%d" % number + b"t" * 40_000 + "\U0001f600".encode()) for number in range(20)]
    with within_the_rule(sum(map(len, heads)) // 64, "20 heads"):
        for head in heads:
            assert isinstance(decode_frame(head + tokens, LOOKUP), Reject)


def test_columns_that_share_their_bytes_are_refused() -> None:
    """Failure would look like: a survey of 64 attributes, and a frame that takes 64 times its size to be counted."""
    scheme = make_scheme(*[300] * 5, solution="spl")
    assert isinstance(decode_frame(encode_frame(random_frame(scheme, 50), scheme), {"s": scheme}.get), Frame)
    refused = decode_frame(frame_that_shares(scheme, 50), {"s": scheme}.get)
    assert isinstance(refused, Reject) and "misplaced" in refused.detail


@pytest.mark.parametrize("kind", [REPORT, CLOCK])
def test_json_of_any_structure_is_refused_with_memory_and_time_in_proportion_to_its_size(kind: str) -> None:
    for what, data in reports():
        with within_the_rule(len(data), what):
            assert isinstance(DECODERS[kind][1](data), Reject), what
            named(kind, data)


@pytest.mark.parametrize("through", ["1e999", "-1e999", "1.5", "true", '"7"', "null", "[]", "{}"])
def test_what_a_clock_record_names_is_an_integer_or_nothing(through: str) -> None:
    """Failure would look like: one dead letter from anybody, and no dead letter is shown any more."""
    assert named(CLOCK, f'{{"survey":"s","through":{through},"mac":""}}'.encode()) is None
