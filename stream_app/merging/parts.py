"""The parts that the merge holds, by survey and period, so that no survey's work grows with that of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stream_app.counting.partials import Part, decode_partial, encode_partial
from stream_app.counting.state import Period
from stream_app.log.codec import pack, unpack

PartKey = tuple[str, int, int]  # survey, period, partition


@dataclass
class HeldPart:
    """The newest part of one partition, and its offset in the partials topic."""

    offset: int
    part: Part
    unsaved: bool = True

    def encode(self) -> bytes:
        return pack({"offset": self.offset}, [np.frombuffer(encode_partial(self.part), dtype=np.uint8)])

    @staticmethod
    def decode(data: bytes) -> HeldPart:
        head, (partial,) = unpack(data)
        part = decode_partial(partial.tobytes())
        assert isinstance(part, Part)
        return HeldPart(head["offset"], part, unsaved=False)


class HeldParts:
    """Parts by survey, period and partition."""

    def __init__(self) -> None:
        self._surveys: dict[str, dict[int, dict[int, HeldPart]]] = {}

    def get(self, key: PartKey) -> HeldPart | None:
        survey, period, partition = key
        return self._surveys.get(survey, {}).get(period, {}).get(partition)

    def put(self, key: PartKey, held: HeldPart) -> None:
        survey, period, partition = key
        self._surveys.setdefault(survey, {}).setdefault(period, {})[partition] = held

    def take(self, period: Period) -> list[PartKey]:
        """Drop the parts of a period; returns their keys."""
        survey, number = period
        periods = self._surveys.get(survey, {})
        taken = [(survey, number, partition) for partition in periods.pop(number, {})]
        if not periods:
            self._surveys.pop(survey, None)
        return taken

    def surveys(self) -> set[str]:
        return set(self._surveys)

    def periods(self, survey: str) -> list[int]:
        """The periods of a survey that have parts, in order."""
        return sorted(self._surveys.get(survey, {}))

    def of(self, survey: str, period: int) -> list[Part]:
        """The parts of one period."""
        return [held.part for held in self._surveys.get(survey, {}).get(period, {}).values()]

    def take_unsaved(self, survey: str) -> Iterator[tuple[PartKey, HeldPart]]:
        """The parts of a survey that are not written yet; from now on they count as written."""
        for period, partitions in sorted(self._surveys.get(survey, {}).items()):
            for partition, held in sorted(partitions.items()):
                if held.unsaved:
                    held.unsaved = False
                    yield (survey, period, partition), held
