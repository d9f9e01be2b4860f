"""Large records are sent as aiokafka would send them, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given
from hypothesis import strategies as st

from stream_app.faust_app.overrides.connections import Pieces
from stream_app.faust_app.overrides.large_records import LARGE_BYTES, LargeRecordBuilder, pieces_of

BATCH_BYTES = 1 << 20
TIME = 1_700_000_000_000


def built(builder: Any, *records: dict[str, Any], producer: tuple[int, int, int] = (4000, 3, 70)) -> Any:
    for record in records:
        assert builder.append(timestamp=TIME, **record) is not None
    builder._set_producer_state(*producer)
    return builder._build()


def joined(batch: Any) -> bytes:
    return b"".join(batch.all) if isinstance(batch, Pieces) else bytes(batch)


@given(
    key=st.binary(max_size=200),
    more=st.integers(0, 2 << 20),
    producer=st.tuples(st.integers(0, 2**62), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1)),
)
def test_a_batch_of_a_large_record_is_the_one_that_aiokafka_makes(
    key: bytes, more: int, producer: tuple[int, int, int]
) -> None:
    record = {"key": key, "value": (bytes(range(256)) * ((LARGE_BYTES + more) // 256 + 1))[: LARGE_BYTES + more]}
    ours = built(LargeRecordBuilder(BATCH_BYTES, 0), record, producer=producer)
    assert isinstance(ours, Pieces)
    assert joined(ours) == joined(built(BatchBuilder(BATCH_BYTES, 0), record, producer=producer))
    assert len(ours) == len(joined(ours))
    assert DefaultRecordBatch(bytearray(joined(ours))).validate_crc()


SMALL, LARGE = {"key": b"k", "value": b"small"}, {"key": b"k", "value": bytes(LARGE_BYTES)}
HEADERS = {**LARGE, "headers": [("name", b"value")]}
NO_KEY: dict[str, Any] = {**LARGE, "key": None}


@pytest.mark.parametrize("records", [[SMALL], [SMALL, LARGE], [HEADERS], [NO_KEY], [SMALL, SMALL]])
def test_all_other_batches_are_made_by_aiokafka(records: list[dict[str, Any]]) -> None:
    ours, theirs = (built(kind(BATCH_BYTES, 0), *records) for kind in (LargeRecordBuilder, BatchBuilder))
    assert not isinstance(ours, Pieces)
    assert bytes(ours) == bytes(theirs)


def test_a_large_record_is_the_only_one_of_its_batch_and_is_not_copied() -> None:
    builder = LargeRecordBuilder(BATCH_BYTES, 0)
    record = builder.append(timestamp=TIME, **LARGE)
    assert (record.offset, record.timestamp, builder.record_count(), builder.closed()) == (0, TIME, 1, True)
    assert builder.append(timestamp=TIME, **SMALL) is None
    batch = builder._build()
    assert any(piece is LARGE["value"] for piece in batch.all)
    assert builder._build() is batch, "another attempt to send it must send the same"


@pytest.mark.parametrize("version", ProduceRequest._CLASSES)
def test_a_request_is_encoded_as_aiokafka_encodes_it(version: Any) -> None:
    record = built(LargeRecordBuilder(BATCH_BYTES, 0), LARGE)
    small = built(LargeRecordBuilder(BATCH_BYTES, 0), SMALL)

    def request(large: Any) -> Any:
        return ProduceRequest(None, -1, 40_000, [("a", [(0, large), (3, small)]), ("b", [(1, large)])]).build(version)

    ours, theirs = request(record), request(joined(record))
    fields = [ours.__dict__[name] for name in ours.SCHEMA.names]
    assert b"".join(pieces_of(ours.SCHEMA, fields)) == theirs.encode()
