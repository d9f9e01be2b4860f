"""What integrity costs: reports by width beside the rest of counting, and the verdict on a period."""

from __future__ import annotations

from time import process_time

import numpy as np

from analytics.integrity import Answers, integrity_of
from bench._tables import Table, best_of
from protocols.privacy import width_laws
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import Frame
from stream_app.counting.counters import PeriodCounts

ROWS, TIMES = 1 << 15, 100
MOST = 0.4  # of the time that counting takes without it


def run() -> Table:
    found = Table("Integrity, on one core", ("values", "counting a report", "of which widths", "a verdict"))
    rng = np.random.default_rng(0)
    for k in (10, 100, 360):
        scheme = Scheme(
            parse_survey(
                "{id: bench, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, horizon: 7, "
                f"attributes: [{{name: a, range: {{last: {k - 1}}}, mechanism: l-osue}}]}}"
            )
        )
        question = scheme.questions[0]
        answers = question.mechanism.encoding.answer.pack(rng.random((ROWS, k)) < 0.27)  # type: ignore[union-attr]
        tokens, gaps = np.arange(1, ROWS + 1, dtype=np.uint64), rng.integers(1, 8, ROWS).astype(np.uint16)
        frame, counts = Frame("bench", scheme.fingerprint, 0, tokens, gaps, {"a": answers}), PeriodCounts(scheme)
        whole = best_of(TIMES, lambda counts=counts, frame=frame: counts.count(frame))  # type: ignore[misc]
        widths = best_of(TIMES, lambda q=question, a=answers: q.mechanism.encoding.count_widths(a))  # type: ignore[misc]
        verdict = best_of(5, lambda q=question, n=counts: _judge(q, n), process_time)  # type: ignore[misc]
        cells = (f"{seconds / ROWS * 1e9:.1f} ns" for seconds in (whole, widths))
        found.row(str(k), *cells, f"{verdict * 1000:.1f} ms")
        if widths > MOST * (whole - widths):
            found.missed.append(f"widths of {k} values: {widths / (whole - widths):.0%} of the rest of counting")
    found.remarks.append("checking a report's token takes about as long again as counting it, and is not included")
    return found


def _judge(question: Question, counts: PeriodCounts) -> None:
    found = counts.snapshot()["a"]
    answers = Answers(found.total, found.supports, found.widths, question.channel, width_laws(question))
    integrity_of(0, {"a": answers}, {"a": answers}, None, {})
