"""Checking rows one by one: a bad row does not affect the others."""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Bytes, Mask
from protocols.scheme import Scheme
from protocols.wire.content import partition_of
from protocols.wire.frame import Frame
from protocols.wire.reasons import Reason

FINE = 0
ROW_REASONS = (Reason.BAD_TOKEN, Reason.WRONG_PARTITION, Reason.BAD_GAP, Reason.BAD_VALUE, Reason.TOO_MANY_BITS)


def row_faults(frame: Frame, scheme: Scheme, partition: int, partitions: int) -> Bytes:
    """For each row FINE, or 1 + the place in ROW_REASONS of the first thing wrong with it."""
    bad_value = np.zeros(len(frame), dtype=bool)
    for name, column in frame.answers.items():
        bad_value |= ~scheme.question(name).mechanism.encoding.answer.good(column)
    tests: tuple[Mask, ...] = (
        frame.tokens == 0,
        partition_of(frame.tokens, partitions) != partition,
        (frame.gaps < 1) | (frame.gaps > scheme.survey.horizon),
        bad_value,
    )
    too_many = None if scheme.presence is None else scheme.presence.too_many(frame.answers, scheme.questions)
    if too_many is not None:
        tests = (*tests, too_many)
    faults = np.zeros(len(frame), dtype=np.uint8)
    for code in range(len(tests), 0, -1):
        if tests[code - 1].any():  # looking is much faster than assigning nothing
            faults[tests[code - 1]] = code
    return faults
