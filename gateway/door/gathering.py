"""From reports that came one by one to frames: sorted by token, cut by partition, so that a counter pays per frame.

The order of the rows says nothing about when they came, and nothing about who sent them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protocols.arrays import Bytes
from protocols.scheme import Scheme
from protocols.wire import (
    ROW_REASONS,
    Frame,
    Reason,
    ReportRow,
    encode_frame,
    join_frames,
    partition_of,
    row_faults,
    rows_frame,
)

MOST_ROWS = 16_384


@dataclass(frozen=True)
class Cut:
    """Reports of one survey and period that answer the same attributes: the good rows by partition, and all faults."""

    faults: Bytes  # for each row 0, or 1 + the place of its reason in ROW_REASONS; rows that came alone are first
    frames: list[tuple[int, Frame]]  # partition, and rows in the order of their tokens

    @property
    def refused(self) -> dict[int, Reason]:
        """Which rows are bad, and why."""
        return {row: ROW_REASONS[int(self.faults[row]) - 1] for row in np.flatnonzero(self.faults).tolist()}

    def encoded(self, scheme: Scheme) -> list[tuple[int, bytes]]:
        return [(partition, encode_frame(frame, scheme)) for partition, frame in self.frames]


def cut_rows(reports: Sequence[ReportRow | Frame], scheme: Scheme, partitions: int) -> Cut:
    """Rows and frames that are alike, judged and cut."""
    rows = [report for report in reports if isinstance(report, ReportRow)]
    frames = [report for report in reports if isinstance(report, Frame)]
    alike = [*([rows_frame(rows, scheme)] if rows else []), *frames]
    whole = alike[0] if len(alike) == 1 else join_frames(alike)
    faults = row_faults(whole, scheme, 0, 1)  # the partition is ours to choose, and cannot be wrong
    good = (whole.take(faults == 0) if faults.any() else whole).sorted()
    by_partition = partition_of(good.tokens, partitions)
    members = ((partition, good.take(by_partition == partition)) for partition in range(partitions))
    return Cut(faults, [(partition, part) for partition, frame in members for part in frame.parts(MOST_ROWS)])
