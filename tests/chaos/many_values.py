"""A survey of very many values while its workers are killed: finals are those of a recount, answer by answer."""

from __future__ import annotations

from itertools import product

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
        encoding = question.mechanism.encoding
        assert isinstance(encoding, FreshHash)
        vectors = np.array(list(product(range(encoding.g), repeat=encoding.digits)))
        hashes, sent = np.divmod(symbols, encoding.g)
        return np.asarray(vectors[hashes] @ vectors[:VALUES].T % encoding.g == sent[:, None])
