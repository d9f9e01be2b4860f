"""What a device answers under some terms: a function of keys, the terms, and its values (docs/device-protocol.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from hearsay_device.attributes import MAX_VALUES
from hearsay_device.draws import WORD, Draws, Table, derived
from hearsay_device.limits import Asked
from hearsay_device.questions import Question
from hearsay_device.terms import Terms

Document = dict[str, Any]
Entropy = Callable[[str], bytes]  # 32 bytes for a name: a device takes them from the system, a test from anywhere


class Respondent:
    """The answering side of a survey. `listed`: version 0.1 joined it, with keys by name, and no order of its own."""

    def __init__(self, terms: Terms, document: Document, entropy: Entropy) -> None:
        self.terms, self._document, self._entropy = terms, document, entropy
        self._listed = document["surveys"][terms.id]["listed"]

    @property
    def asked(self) -> list[Asked]:
        """What this device answers: the tuple, the question that it drew, or all of them."""
        terms, found = self.terms, []
        mine = [terms.questions[self.sampled]] if terms.sampling else terms.questions
        for questions in [terms.questions] if terms.hides else [[question] for question in mine]:
            states = max(question.states for question in questions)
            cap = min(states, terms.memo_cap or states)
            found.append(Asked(self._id(questions), questions, not terms.longitudinal, cap))
        return found

    def draw_keys(self) -> None:
        """Now: then what a report will say does not depend on when it is made."""
        self.answers_in(0)
        for each in self.asked:
            self._key(each.id, "unlisted")

    @property
    def sampled(self) -> int:
        """The question that alone is about the truth, by its place in the survey."""
        asked = self.terms.questions
        order = sorted(range(len(asked)), key=lambda place: "" if self._listed else asked[place].id)
        return order[Table([asked[place].share for place in order]).one(self._drawn("sampled"))]

    def answers_in(self, period: int) -> bool:
        """Whether the device answers in a period, or reports nothing but its presence."""
        every = self.terms.one_in
        return every == 1 or Table([1.0] * every).one(self._drawn("turn")) == period % every

    def cell(self, asked: Asked, question: Question, places: Mapping[str, Any], period_key: bytes) -> int:
        """What is memoised for the values of the question's attributes; None stands for one that is drawn for life."""
        own_places = self._own_places(question)
        if question.several > 1:
            own = {own_places[place] for place in places[question.name]}
            return self._element(asked, question, own, period_key)
        value = 0
        for axis, source in enumerate(question.sources):
            drawn = self._unlisted(asked, question, axis)  # also if it is not needed: work must not tell
            given = places[source.name]
            place = drawn if given is None else given
            value = value * len(source.values) + place
        return question.cell(own_places[value], self._trait(asked, question))

    def _unlisted(self, asked: Asked, question: Question, axis: int) -> int:
        """The place of the value that stands for all that are not listed: drawn once, for life."""
        source = question.sources[axis]
        word = self._draws(asked, question, "unlisted", axis).longs(1)[0]
        drawn = word * len(source.values) // WORD
        if len(question.sources) == 1:
            return self._order(question)[drawn]
        return source.places[source.sorted_values[drawn]]

    def _element(self, asked: Asked, question: Question, own: set[int], period_key: bytes) -> int:
        """Of a set, padded to `several`, the element with the lowest priority; with memos priorities are lifelong."""
        paddings = max(0, question.several - len(own))
        chosen = own.union(range(question.items, question.items + paddings))
        lowest, element = WORD, question.items
        for number, priority in enumerate(self._priorities(asked, question, period_key)):
            if number in chosen and priority < lowest:
                lowest = priority
                element = number
        return element

    def _priorities(self, asked: Asked, question: Question, period_key: bytes) -> Sequence[int]:
        """Those of all elements, whatever the set has: otherwise a large set would take longer."""
        if not asked.fresh:
            return self._draws(asked, question, "draw", 0).all_further(question.k)
        key = derived(period_key, "draw", self.terms.id, self.terms.fingerprint, question.name)
        return Draws(key).all_further(question.k)

    def answer(self, asked: Asked, question: Question, cell: int, period_key: bytes) -> tuple[str, list[str]]:
        """The answer of a cell, in hexadecimal digits, and the values that it speaks for."""
        terms, purpose = self.terms, "once" if asked.fresh else "report"
        noise = Draws(derived(period_key, purpose, terms.id, terms.fingerprint, question.name), cell)
        own = not terms.hides or question is terms.questions[self.sampled]
        memo = question.memoise(cell, own, noise if asked.fresh else self._draws(asked, question, "memo", cell))
        memo, trait = question.to_survey(memo, self._trait(asked, question), self._order(question))
        answer = question.perturb(memo, noise)
        supported = question.supports(answer, trait) if question.k <= MAX_VALUES else []
        return question.finish(answer, trait).hex(), [question.values[place] for place in supported]

    def _key(self, known: str, *purpose: str) -> bytes:
        """The AES key of an id and a purpose. The key of an id is drawn at its first use."""
        kept, keys = self._document["kept"].get(" ".join([known, *purpose])), self._document["keys"]
        if kept is not None:
            return bytes.fromhex(kept)
        if known not in keys:
            keys[known] = self._entropy(known).hex()
        return derived(bytes.fromhex(keys[known]), *purpose)

    def _trait(self, asked: Asked, question: Question) -> Any:
        return question.trait(self._draws(asked, question, "trait", 0)) if question.parameter else None

    def _draws(self, asked: Asked, question: Question, purpose: str, tweak: int) -> Draws:
        within = [self._id([question])] if len(asked.questions) > 1 else []  # which attribute of a tuple
        return Draws(self._key(asked.id, purpose, *within), tweak)

    def _drawn(self, what: str) -> Draws:
        return Draws(self._key(f"{self.terms.id} {what}" if self._listed else self.terms.id_of(what), what))

    def _own_places(self, question: Question) -> Sequence[int]:
        return range(question.k) if self._listed else question.own_places

    def _order(self, question: Question) -> Sequence[int]:
        return range(question.k) if self._listed else question.order

    def _id(self, questions: Sequence[Question]) -> str:
        if len(questions) > 1:
            return self.terms.id if self._listed else self.terms.id_of("tuple")
        return f"{self.terms.id} {questions[0].name}" if self._listed else questions[0].id
