"""How records reach the log readers of their partitions."""

from __future__ import annotations

import pytest
from aiokafka import ConsumerRecord

from stream_app.faust_app.partitions.tasks import in_portions


def record(offset: int, size: int) -> ConsumerRecord:
    return ConsumerRecord("reports", 0, offset, 0, 0, None, bytes(size), None, 0, size, ())


@pytest.mark.parametrize(
    ("sizes", "portions"),
    [
        ({}, []),
        ({5: 0, 6: 0}, [[5, 6]]),
        ({5: 4, 6: 6, 7: 1}, [[5, 6], [7]]),
        ({5: 99, 6: 99}, [[5], [6]]),
        ({5: 1, 7: 1, 8: 1}, [[5], [7, 8]]),
        (dict.fromkeys(range(7), 1), [[0, 1, 2], [3, 4, 5], [6]]),
    ],
    ids=["nothing", "no bytes", "full", "too large", "a gap", "too many"],
)
def test_portions_are_of_limited_size_and_without_gaps(sizes: dict[int, int], portions: list[list[int]]) -> None:
    records = [record(offset, size) for offset, size in sizes.items()]
    assert [[one.offset for one in portion] for portion in in_portions(records, 10, 3)] == portions
