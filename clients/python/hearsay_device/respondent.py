"""What a device answers under some terms: a function of keys, the terms, and its values (docs/device-protocol.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Callable, NamedTuple

from hearsay_device.draws import Draws, below, derived, uniform
from hearsay_device.losses import cost, link, loss
from hearsay_device.questions import MAX_VALUES, Question
from hearsay_device.terms import Terms


class Asked(NamedTuple):
    """What is charged together: a question, or the tuple of all attributes among which one is true.

    `fresh`: without memos. `cap`: the most memos of one attribute that the survey can bring about.
    """

    id: str
    questions: Sequence[Question]
    fresh: bool
    cap: float

    @property
    def constant(self) -> float:
        """All its reports about values that stay as they are; with fresh noise, one of them."""
        return max(loss(question, 1 if self.fresh else inf).whole for question in self.questions)

    def cost(self, answers: int) -> float:
        """Answers about as many cells of each attribute, or about all that there are."""
        if self.fresh:
            return answers * self.constant
        return max(cost(question, int(min(answers, self.cap, question.states))) for question in self.questions)

    def line(self, answers: int = 0, first: int | None = None) -> dict[str, Any]:
        """As the ledger has it."""
        tells = self.constant if self.fresh or self.cap == 1 else sum(map(link, self.questions))
        return {
            "reads": sorted({source.name for question in self.questions for source in question.sources}),
            "fresh": self.fresh, "cap": self.cap, "constant": self.constant, "link": min(tells, 1e300),
            "reserved": 0.0, "answers": answers, "first": first,
        }  # fmt: skip


class Respondent:
    """The answering side of one survey. `key` gives the AES key of an id and a purpose.

    `listed`: the survey was joined by version 0.1, which knew no questions and no other order than the survey's.
    """

    def __init__(self, terms: Terms, key: Callable[..., bytes], listed: bool = False) -> None:
        self.terms, self._key, self._listed = terms, key, listed

    @property
    def asked(self) -> list[Asked]:
        """What this device answers: the tuple, the question that it drew, or all of them."""
        terms, found = self.terms, []
        mine = [terms.questions[self.sampled]] if terms.sampling else terms.questions
        for questions in [terms.questions] if terms.hides else [[question] for question in mine]:
            known = self._id(questions[0])
            if terms.hides:
                known = terms.id if self._listed else terms.id_of("tuple")
            states = max(question.states for question in questions)
            found.append(Asked(known, questions, not terms.longitudinal, min(states, terms.memo_cap or states)))
        return found

    def draw_keys(self) -> None:
        """Draw all keys that are not drawn yet: then what a report will say does not depend on when it is made."""
        self.answers_in(0)
        for each in self.asked:
            self._key(each.id, "memo")
            self._key(each.id, "unlisted")

    @property
    def sampled(self) -> int:
        """The question that alone is about the truth, by its place in the survey."""
        order = list(range(len(self.terms.questions)))
        if not self._listed:
            order.sort(key=lambda place: self.terms.questions[place].id)
        return order[self.terms.sampled(order).one(self._drawn("sampled"))]

    def answers_in(self, period: int) -> bool:
        """Whether the device answers in a period, or reports nothing but its presence."""
        every = self.terms.one_in
        return every == 1 or uniform(every).one(self._drawn("turn")) == period % every

    def cell(self, asked: Asked, question: Question, places: Mapping[str, int | None]) -> int:
        """What is memoised for the values of the question's attributes.

        For a value that is not listed (None) stands the survey's `other`, or one drawn for life.
        """
        value, order = 0, self._order(question)
        for axis, source in enumerate(question.sources):
            place = places[source.name]
            if place is None and source.other is not None:
                place = source.places[source.other]
            if place is None:
                drawn = below(len(source.values), self._draws(asked, question, "unlisted", axis).longs(1)[0])
                place = source.places[sorted(source.values, key=str.encode)[drawn]]
                place = order[drawn] if len(question.sources) == 1 else place
            value = value * len(source.values) + place
        return question.encoding.cell(order.index(value), self._trait(asked, question))

    def answer(self, asked: Asked, question: Question, cell: int, period_key: bytes) -> tuple[str, list[str]]:
        """The answer of a cell, in hexadecimal digits, and the values that it speaks for."""
        terms, encoding = self.terms, question.encoding
        own = not terms.hides or question is terms.questions[self.sampled]
        once, report = (
            Draws(derived(period_key, what, terms.id, terms.fingerprint, question.name), cell)
            for what in ("once", "report")
        )
        memo = encoding.memoise(cell, own, once if asked.fresh else self._draws(asked, question, "memo", cell))
        memo, trait = encoding.to_survey(memo, self._trait(asked, question), self._order(question))
        answer = encoding.perturb(memo, report)
        supported = encoding.supports(answer, trait) if question.k <= MAX_VALUES else []
        return encoding.finish(answer, trait).hex(), [question.values[place] for place in supported]

    def _trait(self, asked: Asked, question: Question) -> Any:
        return question.encoding.trait(self._draws(asked, question, "trait", 0)) if question.parameter else None

    def _draws(self, asked: Asked, question: Question, purpose: str, tweak: int) -> Draws:
        within = [self._id(question)] if len(asked.questions) > 1 else []  # which attribute of a tuple
        return Draws(self._key(asked.id, purpose, *within), tweak)

    def _drawn(self, what: str) -> Draws:
        return Draws(self._key(f"{self.terms.id} {what}" if self._listed else self.terms.id_of(what), what))

    def _order(self, question: Question) -> Sequence[int]:
        return range(question.k) if self._listed else question.order

    def _id(self, question: Question) -> str:
        return f"{self.terms.id} {question.name}" if self._listed else question.id
