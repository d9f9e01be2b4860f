"""Why a record or a row is not counted. Every reason is a metric label and a dead-letter header."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
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
