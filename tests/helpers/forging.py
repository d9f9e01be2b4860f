"""A small collection in a data directory: honest devices, and forged reports among them."""

from pathlib import Path
from typing import Any

import numpy as np

from hearsay.data_directory import COLLECTOR
from lab.seeded_keyrings import seeded_keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.wire import Frame, encode_frame
from tests.helpers.collecting import Collection, collecting


def collect(directory: Path, scheme: Scheme, devices: int, periods: int, forged: int = 0, false_gaps: int = 0) -> None:
    """Everybody reports in every period. In the last one, forged reports support the first value of each attribute
    and nothing else; and some more come from devices that claim to have reported before, but did not."""
    respondent, rng = Respondent(scheme, seeded_keyring(0)), np.random.default_rng(0)
    everybody = np.arange(devices, dtype=np.uint64)
    values = {q.name: rng.integers(0, q.k, devices) for q in scheme.questions}
    with collecting(directory / COLLECTOR, scheme.survey) as (to,):
        for period in range(periods):
            answers = {q.name: respondent.answers(q, everybody, period, values[q.name]) for q in scheme.questions}
            gap = 1 if period else scheme.survey.horizon
            send(to, scheme, period, respondent.tokens(everybody, period), np.full(devices, gap), answers)
            if period == periods - 1 and forged:
                first = {q.name: supporting_first(scheme, q.name, forged) for q in scheme.questions}
                tokens = rng.integers(1, 1 << 62, forged, dtype=np.uint64)
                send(to, scheme, period, tokens, np.full(forged, scheme.survey.horizon), first)
            if period == periods - 1 and false_gaps:
                others = np.arange(devices, devices + false_gaps, dtype=np.uint64)
                true = {q.name: rng.integers(0, q.k, false_gaps) for q in scheme.questions}
                answers = {q.name: respondent.answers(q, others, period, true[q.name]) for q in scheme.questions}
                send(to, scheme, period, respondent.tokens(others, period), np.full(false_gaps, 1), answers)
            to.close(period)


def send(to: Collection, scheme: Scheme, period: int, tokens: Any, gaps: Any, answers: dict[str, Any]) -> None:
    frame = Frame(scheme.survey.id, scheme.fingerprint, period, tokens, gaps.astype(np.uint16), answers)
    to.send(encode_frame(frame.sorted(), scheme))


def supporting_first(scheme: Scheme, name: str, rows: int) -> Any:
    """Answers that support the first value and nothing else: a symbol, or one bit."""
    layout = scheme.question(name).mechanism.encoding.answer
    row = layout.from_bytes(np.eye(1, layout.bytes, dtype=np.uint8) * (not scheme.question(name).channel.exclusive))
    return np.repeat(row, rows, axis=0)
