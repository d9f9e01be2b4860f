"""A survey, compiled: which mechanism asks each attribute, with which probabilities, and what its reports mean.

Everything a caller needs is derived here; nobody outside computes a p or a q.

    spl              every attribute, each with its part of the budget
    smp              one attribute per device, drawn once for life, disclosed
    rs+fd, rs+rfd    every attribute; one of them (never disclosed) true, the others fake
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from protocols.errors import InfeasibleError, SurveyError
from protocols.mechanisms.catalogue import ONE_ROUND, TWO_ROUNDS, build
from protocols.mechanisms.channels import SupportChannel, variance_at_zero
from protocols.mechanisms.mechanism import Budget
from protocols.privacy.amplification import Ask, Budgets, amplified, calibrated
from protocols.privacy.guarantees import Guarantees
from protocols.question import Question
from protocols.survey.attribute import MAX_ORDERED, Attribute
from protocols.survey.model import Survey

__all__ = ["FAKED", "Question", "Scheme"]

# What a name means under fake data: the base mechanism (one round, two rounds) and what fakes encode.
FAKED = {
    "grr": ("grr", "l-grr", "prior"),
    "sue-z": ("sue", "l-sue", "zero"),
    "sue-r": ("sue", "l-sue", "prior"),
    "oue-z": ("oue", "l-osue", "zero"),
    "oue-r": ("oue", "l-osue", "prior"),
}


class Scheme:
    """All questions of a survey.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> scheme = Scheme(parse_survey('''
    ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1,
    ...  attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 99}}]}'''))
    >>> [question.mechanism.name for question in scheme.questions]
    ['l-grr', 'l-osue']
    """

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        try:
            self.questions = self._settle([self._labels(attribute) for attribute in survey.attributes])
        except InfeasibleError as error:
            raise SurveyError(f"survey {survey.id!r}: {error.message}", error.hint) from None

    @property
    def sampling(self) -> bool:
        """Whether each device has one attribute for life that is really about it."""
        return self.survey.solution != "spl" and len(self.questions) > 1

    @property
    def discloses(self) -> bool:
        """Whether a report answers only the sampled attribute."""
        return self.survey.solution == "smp" and len(self.questions) > 1

    @cached_property
    def guarantees(self) -> Guarantees:
        """What these questions really reveal."""
        return Guarantees(self.survey, self.questions)

    def question(self, name: str) -> Question:
        return self.questions[self.survey.index(name)]

    def _settle(self, options: list[list[str]]) -> tuple[Question, ...]:
        """Of each attribute's mechanisms the one with the smaller variance where nobody has the value.

        Attributes are independent of each other, except under `guarantee: attribute`, where a choice changes what all
        may spend. So they take turns, in order, and one switches only if the sum of all variances falls: whatever the
        guarantee, this ends, and it always ends in the same place.
        """
        best = self._ask([labels[0] for labels in options])
        while True:
            before = best
            for place, labels in enumerate(options):
                for label in labels:
                    asked = [question.label for question in best]
                    if asked[place] != label:
                        asked[place] = label
                        best = min(best, self._ask(asked), key=_total_variance)
            if best is before:
                return best

    def _ask(self, labels: list[str]) -> tuple[Question, ...]:
        """All attributes, with these mechanisms."""
        pairs = list(zip(self.survey.attributes, labels, strict=True))
        if not self._hides:
            return tuple(self._ask_plainly(*pair) for pair in pairs)

        def ask(budgets: Budgets) -> tuple[Question, ...]:
            return tuple(self._ask_faked(attribute, label, budgets) for attribute, label in pairs)

        return ask(self._hidden_budgets(ask))

    def _hidden_budgets(self, ask: Ask) -> Budgets:
        """What the sampled attribute may spend under each guarantee (PROTOCOLS 4)."""
        inf, one = declared = self._declared
        if self.survey.guarantee == "attribute":
            return calibrated(declared, ask)
        if self.survey.guarantee == "published":
            count = len(self.survey.attributes)
            return amplified(inf, count), None if one is None else amplified(one, count)
        return declared

    def alternatives(self, question: Question) -> dict[str, Question]:
        """This attribute with every mechanism that it could use, the others as they are; itself included."""
        place, found = self.survey.index(question.name), {}
        for label in self._possible(question.attribute):
            labels = [other.label for other in self.questions]
            labels[place] = label
            with suppress(InfeasibleError):
                found[label] = self._ask(labels)[place]
        return found

    def _labels(self, attribute: Attribute) -> list[str]:
        """The mechanisms to choose from; more than one means: the smaller variance where nobody has the value."""
        survey, name = self.survey, attribute.mechanism
        if name in ("auto", "adp", "allomfree"):
            if self._hides:  # auto never chooses -z, which gives the sampled attribute away (PROTOCOLS 4)
                return ["grr", "oue-z" if name == "adp" and survey.solution == "rs+fd" else "oue-r"]
            return ["grr", "oue"] if survey.eps_1 is None else ["l-grr", "l-osue"]
        if name in ("geometric", "l-geometric") and not attribute.ordered:
            raise SurveyError(
                f"attribute {attribute.name!r}: {name} needs an order", "declare a range, or choose another mechanism"
            )
        possible = self._possible(attribute)
        if name not in possible:
            raise SurveyError(
                f"attribute {attribute.name!r}: mechanism {name!r} does not fit this survey's solution and budgets",
                f"possible here: auto, {', '.join(possible)}",
            )
        return [name]

    def _possible(self, attribute: Attribute) -> list[str]:
        """Every mechanism that fits this attribute under the survey's solution and budgets."""
        if self._hides:
            return [
                label for label, (*_, fakes) in FAKED.items() if self.survey.solution == "rs+fd" or fakes == "prior"
            ]
        labels = list(ONE_ROUND if self.survey.eps_1 is None else TWO_ROUNDS)
        misfits = {"loloha", "dbitflip"} if self.survey.eps is not None else set()  # no memo, nothing lifelong
        if not attribute.ordered or attribute.k > MAX_ORDERED:
            misfits |= {"geometric", "l-geometric"}
        return [label for label in labels if label not in misfits]

    def _ask_plainly(self, attribute: Attribute, label: str) -> Question:
        parts = len(self.survey.attributes) if self.survey.solution == "spl" else 1
        inf, one = self._declared
        budget = Budget(inf / parts, None if one is None else one / parts, self.survey.calibration)
        return Question(attribute, build(label, attribute.k, budget, attribute.parameter), label, budget)

    def _ask_faked(self, attribute: Attribute, label: str, budgets: Budgets) -> Question:
        one_round, two_rounds, fakes = FAKED[label]
        budget = Budget(*budgets, self.survey.calibration)
        mechanism = build(one_round if budget.one is None else two_rounds, attribute.k, budget)
        fake = None if fakes == "zero" else _distribution(attribute)
        return Question(attribute, mechanism, label, budget, 1 / len(self.survey.attributes), fake)

    @property
    def _hides(self) -> bool:
        return self.survey.solution.startswith("rs")

    @property
    def _declared(self) -> Budgets:
        if self.survey.eps is not None:
            return self.survey.eps, None
        assert self.survey.eps_inf is not None
        return self.survey.eps_inf, self.survey.eps_1


def _total_variance(questions: tuple[Question, ...]) -> float:
    """Of all affine channels; a matrix is never one of several options."""
    channels = [question.channel for question in questions]
    return sum(variance_at_zero(channel) for channel in channels if isinstance(channel, SupportChannel))


def _distribution(attribute: Attribute) -> NDArray[np.float64]:
    if attribute.prior is None:
        return np.full(attribute.k, 1 / attribute.k)
    return np.array([attribute.prior[value] for value in attribute.values])
