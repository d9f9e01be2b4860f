"""A sink that keeps what it is given, and can be told to fail."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from protocols.errors import DeliveryError
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, Frame, decode_clock, decode_frame


@dataclass
class KeepingSink:
    """Records in the order sent, of which some are confirmed; `fail_after` sends, the next flush does not confirm.

    What is not confirmed may have arrived or not: a test that says nothing is lost does without it.
    """

    partitions: int = 4
    fail_after: int | None = None
    records: list[tuple[int, str, bytes]] = field(default_factory=list)
    confirmed: int = 0

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        self.records.append((partition, content_type, value))

    def flush(self) -> None:
        if self.fail_after is not None and len(self.records) > self.fail_after:
            raise DeliveryError("told to fail")
        self.confirmed = len(self.records)

    def close(self) -> None:
        pass

    def frames(self, scheme: Scheme) -> list[Frame]:
        """Whatever does not decode fails the test."""
        found = []
        for _, content_type, value in self.records:
            if content_type == FRAME:
                frame = decode_frame(value, {scheme.survey.id: scheme}.get)
                assert isinstance(frame, Frame), frame
                found.append(frame)
        return found

    def clocks(self, key: bytes) -> list[tuple[int, Clock]]:
        found = []
        for partition, content_type, value in self.records:
            if content_type == CLOCK:
                clock = decode_clock(value, key)
                assert isinstance(clock, Clock), clock
                found.append((partition, clock))
        return found


def rows_by_token(frames: list[Frame]) -> dict[tuple[int, int], tuple[int, tuple[tuple[str, bytes], ...]]]:
    """(period, token) -> gap and answers. The same token twice must carry the same report."""
    rows: dict[tuple[int, int], tuple[int, tuple[tuple[str, bytes], ...]]] = {}
    for frame in frames:
        for i, token in enumerate(frame.tokens.tolist()):
            answers = tuple((name, column[i].tobytes()) for name, column in frame.answers.items())
            row = (int(frame.gaps[i]), answers)
            assert rows.setdefault((frame.period, token), row) == row, "a second attempt made another report"
    return rows


def tokens_of(frames: list[Frame], period: int) -> NDArray[np.uint64]:
    """All tokens of a period, as often as they were sent."""
    return np.concatenate([f.tokens for f in frames if f.period == period] or [np.empty(0, dtype=np.uint64)])
