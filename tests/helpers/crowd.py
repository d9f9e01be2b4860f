"""A simulated crowd: true values in, support counts out, through the devices' own code."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.seeded_keyrings import seeded_keyring
from protocols.arrays import Whole
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey


def scheme_of(attributes: str, terms: str = "eps_inf: 2, eps_1: 1") -> Scheme:
    """A compiled survey from a few words: `scheme_of("{name: a, values: [x, y]}")`."""
    return Scheme(
        parse_survey(f"{{id: s, start: 2026-01-05T00:00:00Z, period: 1d, {terms}, attributes: [{attributes}]}}")
    )


def answers_of(question: Question, respondent: Respondent, values: Whole, period: int = 0) -> NDArray[Any]:
    """What devices 0, 1, ... answer in a period if these are their values."""
    return respondent.answers(question, np.arange(len(values), dtype=np.uint64), period, values)


def counts_of(
    scheme: Scheme, name: str, values: Whole, groups: Whole, seed: int = 1, period: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Support counts [group, value] of one attribute and reports [group], from devices with these values."""
    question, respondent = scheme.question(name), Respondent(scheme, seeded_keyring(seed))
    answers, size = answers_of(question, respondent, values, period), int(groups.max()) + 1
    if scheme.discloses:
        asked = respondent.sampled(np.arange(len(values), dtype=np.uint64)) == scheme.survey.index(name)
        answers, groups = answers[asked], groups[asked]
    return question.mechanism.encoding.count(answers, groups, size), np.bincount(groups, minlength=size)
