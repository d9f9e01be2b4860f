"""The three kinds of records on the reports topic, distinguished by a header, and why one is not counted."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from protocols.arrays.aliases import Tokens, Whole

CONTENT_TYPE_HEADER: Final = "content-type"
FRAME: Final = "application/vnd.hearsay.frame+arrow"
REPORT: Final = "application/vnd.hearsay.report+json"
CLOCK: Final = "application/vnd.hearsay.clock+json"
TERMS: Final = "application/vnd.hearsay.terms+json"  # as they travel to devices (docs/device-protocol.md)

MAX_RECORD_BYTES: Final = 4 << 20
MAX_ROWS: Final = 65_536
MAX_TERMS_BYTES: Final = 8 << 20


class Reason(StrEnum):
    """Why a record or a row is not counted. Every reason is a metric label and a dead-letter header."""

    # whole records
    UNDECODABLE = "undecodable"  # its bytes do not fit its content type
    TOO_LARGE = "too-large"
    UNKNOWN_SURVEY = "unknown-survey"
    WRONG_FINGERPRINT = "wrong-fingerprint"
    BAD_MAC = "bad-mac"  # a clock record not made with the operator's key
    LATE = "late"  # its period is closed
    TOO_FAR_AHEAD = "too-far-ahead"
    # single rows
    REPEAT = "repeat"  # the token was counted in this period: a retry, harmless
    WRONG_PARTITION = "wrong-partition"
    BAD_TOKEN = "bad-token"  # noqa: S105 (zero)
    BAD_GAP = "bad-gap"
    BAD_VALUE = "bad-value"
    TOO_MANY_BITS = "too-many-bits"  # supports more values than the noise of presence_epsilon covers


@dataclass(frozen=True)
class Reject:
    """A record that is not counted, and why; `survey` if it could be read, `rows` if they could be counted."""

    reason: Reason
    detail: str
    survey: str | None = None
    rows: int = 1


def partition_of(tokens: Tokens, partitions: int) -> Whole:
    """The partition of each token: the token modulo their number, so that all copies of a token meet one counter.

    >>> partition_of(np.array([7, 8], dtype=np.uint64), 3).tolist()
    [1, 2]
    """
    count = np.uint64(partitions)
    if partitions.bit_count() == 1:
        return (tokens & (count - np.uint64(1))).view(np.int64)
    return (tokens - tokens // count * count).view(np.int64)  # numpy's division is fast, its remainder is not
