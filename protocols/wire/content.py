"""The three kinds of records on the reports topic, distinguished by a header."""

from __future__ import annotations

from typing import Final

import numpy as np

from protocols.arrays.aliases import Tokens, Whole

CONTENT_TYPE_HEADER: Final = "content-type"
FRAME: Final = "application/vnd.hearsay.frame+arrow"
REPORT: Final = "application/vnd.hearsay.report+json"
CLOCK: Final = "application/vnd.hearsay.clock+json"

MAX_RECORD_BYTES: Final = 4 << 20
MAX_ROWS: Final = 65_536


def partition_of(tokens: Tokens, partitions: int) -> Whole:
    """The partition of each token: the token modulo their number, so that all copies of a token meet one counter.

    >>> partition_of(np.array([7, 8], dtype=np.uint64), 4).tolist()
    [3, 0]
    >>> partition_of(np.array([7, 8], dtype=np.uint64), 3).tolist()
    [1, 2]
    """
    count = np.uint64(partitions)
    if partitions & (partitions - 1) == 0:
        return (tokens & (count - np.uint64(1))).view(np.int64)
    return (tokens - tokens // count * count).view(np.int64)  # numpy's division is fast, its remainder is not
