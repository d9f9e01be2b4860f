"""The guarantees of a survey between histories of three relations, computed from its channels (PROTOCOLS 3 to 5).

And losses, how much an observer can learn, as plans, results and evaluations show them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf, isinf
from typing import Any, Literal

from pydantic import Field

from protocols.mechanisms.mechanism import Mechanism
from protocols.mechanisms.places.rounds import PlaceRound
from protocols.mechanisms.rounds import MatrixRound
from protocols.privacy.hidden import attribute_losses, tuple_loss
from protocols.privacy.histories import any_loss, second_round_loss
from protocols.privacy.linked import element_loss, loss, loss_of_values, neighbour_loss
from protocols.privacy.presence import PresenceNoise
from protocols.question import Question
from protocols.survey.attribute import Attribute
from protocols.survey.model import Survey
from protocols.survey.names import Strict

Relation = Literal["constant", "renaming", "any"]
"""How the two histories are related that a loss holds between (PROTOCOLS 3).

    constant    in both, the value never changes
    renaming    both are the same up to an injective renaming of cells: they change and return at the same times
    any         nothing is assumed about them
"""


class Loss(Strict):
    """The largest log-ratio an observer can find, computed from the survey's channels."""

    relation: Relation
    whole: float | None
    attribute: float | None
    exact: bool


def stated(relation: Relation, whole: float, attribute: float, exact: bool = True) -> Loss:
    """A loss in which infinity is stated as having no bound.

    >>> stated("any", inf, inf)
    Loss(relation='any', whole=None, attribute=None, exact=True)
    """
    return Loss(
        relation=relation,
        whole=None if isinf(whole) else whole,
        attribute=None if isinf(attribute) else attribute,
        exact=exact or isinf(whole),
    )


NEAR = 500.0
"""Metres: a person's device counts what a question about places tells for two positions that far apart."""
NOT_PROTECTED = 5.0
"""A loss above which two positions count as told apart: the likelier one is right in more than 99 of 100 cases."""


class PlaceLoss(Strict):
    """What an observer can learn about which of two positions it was, by how far they are apart (PROTOCOLS 10)."""

    metres: float
    per_report: float
    for_ever: float | None
    any: dict[int, float | None]
    protected: bool = Field(description=f"whether one report costs at most {NOT_PROTECTED:g}")


@dataclass(frozen=True)
class Guarantees:
    """What a survey guarantees, for the questions it was compiled into.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> from protocols.scheme import Scheme
    >>> promise = Scheme(parse_survey('''
    ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, solution: rs+fd, guarantee: published,
    ...  attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 99}}]}''')).guarantees
    >>> round(promise.per_report.whole, 3), round(promise.per_report.attribute, 3)
    (1.49, 1.2)
    >>> [(loss.relation, round(loss.whole, 1), loss.exact) for loss in (promise.for_ever, promise.any(10))]
    [('constant', 2.6, True), ('any', 1881.2, False)]
    """

    survey: Survey
    questions: tuple[Question, ...]
    presence: PresenceNoise | None = None  # on what is published

    def constant(self, t: float) -> Loss:
        """After t linked reports, if the values never change; infinity: whatever more is sent.

        With one_in they are the reports of t consecutive periods, as everywhere here.
        """
        if self._fresh and t == inf:
            return stated("constant", inf, inf)
        losses = self.per_attribute(t)
        if self._hides:
            return stated("constant", tuple_loss(self.questions, self._answers(t), self._fresh), max(losses))
        # Of bits of sets and of memos of places there are bounds: two sets lose less than two elements do.
        bits_of_sets = any(q.sets and not q.mechanism.encoding.exclusive for q in self.questions)
        memo_of_places = not self._fresh and t != inf and any(q.attribute.placed for q in self.questions)
        exact = not bits_of_sets and not memo_of_places
        return stated("constant", self._over_tuples(losses), max(losses), exact)

    @property
    def renaming(self) -> Loss | None:
        """All memos a device may ever have, between histories equal up to a renaming of cells; None if one-shot."""
        if self._fresh:
            return None
        losses = [loss_of_values(q.mechanism, c) for q, c in zip(self.questions, self.values, strict=True)]
        if not self._hides:
            bound = self._sets or any(isinstance(q.mechanism.first, PlaceRound) for q in self.questions)
            return stated("renaming", self._over_tuples(losses), max(losses), exact=not bound)
        one = attribute_losses(self.questions, inf, fresh=False, values=self.values)
        uniform = all(question.attribute.prior is None for question in self.questions)
        return stated("renaming", max(losses), max(one), exact=uniform and len(set(self.values)) == 1)

    def any(self, t: int) -> Loss:
        """After t linked reports, between any two histories.

        One-shot reports lose the same whatever the histories are (with one_in, those that answer). So does a device
        that holds its first memo for good (a cap of 1). A larger cap is not made use of: the figure is then that
        without a cap. Fakes have memos too, so among fakes every attribute counts.
        """
        cap = self.survey.memo_cap
        if self._fresh or t == 1 or cap == 1:
            same = self.constant(t)
            return same.model_copy(update={"relation": "any"})
        if self._hides:
            bounds = [t * second_round_loss(question.mechanism) for question in self.questions]
            return stated("any", sum(bounds), max(bounds), exact=False)
        found = [any_loss(question.mechanism, t) for question in self.questions]
        losses = [figure for figure, _ in found]
        exact = all(exact for _, exact in found) and (cap is None or cap >= t) and not self._sets
        return stated("any", self._over_tuples(losses), max(losses), exact)

    def figures(self, linked: Sequence[int]) -> dict[str, Any]:
        """What plans and results state, for so many linked reports; without the cap where that makes a difference."""
        free = self.without_cap
        return {
            "per_report": self.per_report,
            "per_window": self.per_window,
            "for_ever": self.for_ever,
            "per_additional_value": self.per_additional_value,
            "renaming": self.renaming,
            "renaming_without_cap": free.renaming if free.values != self.values else None,
            "any": {t: self.any(t) for t in linked},
            "any_without_cap": {t: free.any(t) for t in linked} if self.survey.memo_cap == 1 else None,
            "places": self.of_places(linked),
        }

    @cached_property
    def without_cap(self) -> "Guarantees":
        """What still holds after a loss of the memo store was accepted: devices may then exceed their cap."""
        return replace(self, survey=self.survey.model_copy(update={"memo_cap": None}))

    @property
    def per_report(self) -> Loss:
        """One report, between any two tuples of values."""
        return self.any(1)

    @property
    def per_window(self) -> Loss | None:
        """All reports of any `one_in` consecutive periods, between any two histories; None without one_in."""
        return self.any(self.survey.one_in) if self.survey.one_in > 1 else None

    @property
    def for_ever(self) -> Loss:
        """All reports of values that never change. A one-shot survey has no such bound: its reports add up."""
        return self.constant(inf)

    @property
    def per_additional_value(self) -> Loss | None:
        """What each further cell may add to `renaming`; None where nothing is memoised.

        Fake data does not reduce it: the true attribute is drawn once, and the first value may have revealed which.
        """
        if self._fresh:
            return None
        losses = [element_loss(question.mechanism, inf) for question in self.questions]
        whole = self.for_ever.whole if self._hides else self._over_tuples(losses)
        assert whole is not None, "memos are bounded"
        return stated("renaming", whole, max(losses), exact=not self._sets)

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The most memos of each attribute that a device can have: the cap, or as many as there are cells."""
        cap = self.survey.memo_cap or inf
        return tuple(int(min(question.mechanism.encoding.states, cap)) for question in self.questions)

    def per_attribute(self, t: float) -> tuple[float, ...]:
        """For each attribute the loss where only it differs, after t linked reports of constant values."""
        if self._hides:
            return tuple(attribute_losses(self.questions, self._answers(t), self._fresh))
        return tuple(self._linked(loss, question, t) for question in self.questions)

    def between_neighbours(self, t: float) -> dict[str, float]:
        """For ordered mechanisms: what one unit of distance costs, after t linked reports of constant values."""
        ordered = [q for q in self.questions if isinstance(q.mechanism.first, MatrixRound) and not q.attribute.placed]
        return {question.name: self._linked(neighbour_loss, question, t) for question in ordered}

    def of_places(self, linked: Sequence[int] = (10, 100)) -> dict[str, tuple[PlaceLoss, ...]]:
        """By attribute: what is revealed about two positions, by how far they are apart.

        Where they are next to each other, at the declared radius and twice that, at what a person's device counts
        (`NEAR`), and at the widest distance of two cells. `any` is for any two histories whose positions are never
        further apart than that. With memos it does not depend on the distance: whether two reports come from one memo
        shows however near two positions are (PROTOCOLS 10).

        >>> from protocols.survey_text.parsing import parse_survey
        >>> from protocols.scheme import Scheme
        >>> promise = Scheme(parse_survey('''
        ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, attributes: [{name: place, geo: {level: 1.1, radius: 400m},
        ...  grid: {at: [47, 6], cell: 500m, columns: 60, rows: 45}}]}''')).guarantees
        >>> in_words(promise.of_places()["place"][:3])
        'two positions 0 m apart: 0.55; 400 m apart: 1.1; 500 m apart: 1.1'
        """
        return {
            question.name: tuple(self._of_place(question, metres, linked) for metres in _distances(question.attribute))
            for question in self.questions
            if isinstance(question.mechanism.first, PlaceRound)
        }

    def _of_place(self, question: Question, metres: float, linked: Sequence[int]) -> PlaceLoss:
        grid, mechanism, cap = question.attribute.grid, question.mechanism, self.survey.memo_cap
        assert grid is not None
        sides = grid.area.apart(metres / grid.cell)
        one, ever = (neighbour_loss(mechanism, t) * sides for t in (1, inf))

        def histories(t: int) -> float | None:
            if cap == 1:
                return ever
            if self._fresh or t == 1:
                return self._answers(t) * one
            return None if self.survey.sends_memo else any_loss(mechanism, t)[0]

        return PlaceLoss(
            metres=metres,
            per_report=one,
            for_ever=None if self._fresh else ever,
            any={t: histories(t) for t in linked},
            protected=one <= NOT_PROTECTED,
        )

    def _linked(self, of: Callable[[Mechanism, float], float], question: Question, t: float) -> float:
        """The loss of t linked reports: of one memo, or that of fresh ones, which adds up."""
        answers = self._answers(t)
        return answers * of(question.mechanism, 1) if self._fresh else of(question.mechanism, answers)

    def _answers(self, t: float) -> float:
        """How many of t reports can be answers: with one_in, t are those of consecutive periods (PROTOCOLS 3)."""
        return t if t == inf else ceil(t / self.survey.one_in)

    @property
    def _fresh(self) -> bool:
        return not self.survey.longitudinal

    @property
    def _sets(self) -> bool:
        """Whether losses of several elements are bounds: what is known is that of two histories of drawn elements."""
        return any(question.sets for question in self.questions)

    @property
    def _hides(self) -> bool:
        return self.questions[0].faked

    @property
    def _over_tuples(self) -> Callable[[Sequence[float]], float]:
        """Losses of attributes that are all answered add up; of a sampled one the largest counts."""
        return sum if self.survey.solution == "spl" else max


def _distances(attribute: Attribute) -> list[float]:
    """The distances that losses are stated for, in metres."""
    grid, reach = attribute.grid, attribute.geo or attribute.geo_inf
    assert grid is not None and reach is not None
    return sorted({0.0, reach.radius, 2 * reach.radius, NEAR, round(grid.diameter, 1)})


def in_words(losses: Sequence[PlaceLoss]) -> str:
    """For people: what one report tells about two positions.

    >>> near = PlaceLoss(metres=400, per_report=1.1, for_ever=None, any={}, protected=True)
    >>> in_words([near, PlaceLoss(metres=10_000, per_report=27.5, for_ever=None, any={}, protected=False)])
    'two positions 400 m apart: 1.1; 10 km apart: 28, not protected'
    """
    parts = [
        f"{_far(loss.metres)} apart: {_figure(loss.per_report)}" + ("" if loss.protected else ", not protected")
        for loss in losses
    ]
    return "two positions " + "; ".join(parts)


def _far(metres: float) -> str:
    return f"{metres:,.3g} m" if metres < 1000 else f"{metres / 1000:,.4g} km"


def _figure(loss: float) -> str:
    return f"{loss:.2g}" if loss < 100 else f"{loss:.0f}"
