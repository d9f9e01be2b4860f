"""A survey of very many values while its workers are killed: finals are those of a recount, answer by answer."""

import numpy as np

from protocols.mechanisms import FreshHash
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.chaos.frames import FramesOrdeal

VALUES = 1000


class ManyValuesOrdeal(FramesOrdeal):
    """Supports are found hash by hash and value by value."""

    what = "very many values"
    scheme = Scheme(
        parse_survey(
            "{id: many, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, eps: 1, horizon: 2, "
            f"attributes: [{{name: item, range: {{last: {VALUES - 1}}}, mechanism: olh}}]}}"
        )
    )

    def _supported(self, question: Question, symbols: np.ndarray) -> np.ndarray:
        return supported(question, symbols)


def supported(question: Question, symbols: np.ndarray) -> np.ndarray:
    """Which values the answers to a question support: a row for each answer."""
    encoding = question.mechanism.encoding
    assert isinstance(encoding, FreshHash)
    g, digits = encoding.g, encoding.digits
    vectors = np.stack(np.unravel_index(np.arange(g**digits), (g,) * digits), axis=1).astype(np.float32)
    hashes, sent = np.divmod(symbols.astype(np.int64), g)
    return np.asarray((vectors[hashes] @ vectors[: question.k].T).astype(np.int32) % g == sent[:, None])
