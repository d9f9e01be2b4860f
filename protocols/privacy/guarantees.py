"""The exact guarantees of a survey, computed from its channels (PROTOCOLS 3 to 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from protocols.mechanisms.rounds import MatrixRound
from protocols.privacy.hidden import attribute_losses, tuple_loss
from protocols.privacy.linked import loss, loss_of_values, neighbour_loss
from protocols.privacy.loss import UNBOUNDED, Loss
from protocols.question import Question
from protocols.survey.model import Survey


@dataclass(frozen=True)
class Guarantees:
    """The exact guarantees of a survey, for the questions it was compiled into.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> from protocols.scheme import Scheme
    >>> promise = Scheme(parse_survey('''
    ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, solution: rs+fd, guarantee: published,
    ...  attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 99}}]}''')).guarantees
    >>> round(promise.per_report.whole, 3), round(promise.per_report.attribute, 3)
    (1.49, 1.2)
    """

    survey: Survey
    questions: tuple[Question, ...]

    def after(self, t: float) -> Loss:
        """After t linked reports of the same values; infinity: whatever more is sent."""
        if not self._fresh:
            losses = [loss(question.mechanism, t) for question in self.questions]
        elif t == inf:
            return UNBOUNDED
        else:
            losses = [t * loss(question.mechanism) for question in self.questions]
        if self._hides:
            one = attribute_losses(self.questions, t, self._fresh)
            return Loss(whole=tuple_loss(self.questions, t, self._fresh), attribute=max(one), exact=True)
        return Loss(whole=self._over_tuples(losses), attribute=max(losses), exact=True)

    @property
    def per_report(self) -> Loss:
        return self.after(1)

    @property
    def for_ever(self) -> Loss:
        """All reports of one value together. A one-shot survey has no such bound: its reports add up."""
        return self.after(inf)

    @property
    def per_additional_value(self) -> Loss | None:
        """What each further value may add; None where nothing is memoised (each report adds `per_report`).

        Fake data does not reduce it: the true attribute is drawn once, and the first value may have revealed which.
        """
        if self._fresh:
            return None
        largest = max(loss(question.mechanism, inf) for question in self.questions)
        return Loss(whole=self.for_ever.whole, attribute=largest, exact=True)

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The most values each attribute can memoise: the cap, or as many memos as there are."""
        cap = self.survey.memo_cap or inf
        return tuple(int(min(question.mechanism.encoding.states, cap)) for question in self.questions)

    @property
    def at_the_cap(self) -> Loss | None:
        """All memos a device may ever have, between histories that change at the same times; None if one-shot."""
        if self._fresh:
            return None
        losses = [loss_of_values(q.mechanism, c) for q, c in zip(self.questions, self.values, strict=True)]
        if not self._hides:
            return Loss(whole=self._over_tuples(losses), attribute=max(losses), exact=True)
        one = attribute_losses(self.questions, inf, fresh=False, values=self.values)
        uniform = all(question.attribute.prior is None for question in self.questions)
        return Loss(whole=max(losses), attribute=max(one), exact=uniform and len(set(self.values)) == 1)

    def per_attribute(self, t: float) -> tuple[float, ...]:
        """For each attribute the loss where only it changes, after t linked reports."""
        if self._hides:
            return tuple(attribute_losses(self.questions, t, self._fresh))
        if self._fresh:
            return tuple(t * loss(question.mechanism) for question in self.questions)
        return tuple(loss(question.mechanism, t) for question in self.questions)

    def between_neighbours(self, t: float) -> dict[str, float]:
        """For ordered mechanisms: what one unit of distance costs, after t linked reports."""
        ordered = [question for question in self.questions if isinstance(question.mechanism.first, MatrixRound)]
        if self._fresh:
            return {question.name: t * neighbour_loss(question.mechanism) for question in ordered}
        return {question.name: neighbour_loss(question.mechanism, t) for question in ordered}

    @property
    def _fresh(self) -> bool:
        return not self.survey.longitudinal

    @property
    def _hides(self) -> bool:
        return self.questions[0].faked

    @property
    def _over_tuples(self) -> Callable[[Sequence[float]], float]:
        """Losses of attributes that are all answered add up; of a sampled one the largest counts."""
        return sum if self.survey.solution == "spl" else max
