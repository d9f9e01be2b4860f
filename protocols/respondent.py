"""A device's memos, reports and tokens. A device draws the same alone and among a million others.

All draws derive from the keyring (PROTOCOLS 8): round 1 over (survey, attribute, cell), round 2 over (survey,
attribute, period), lifelong traits over (survey). `survey` is its id and its fingerprint: under other terms, all draws
of a device are independent of these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from protocols.arrays.aliases import Column, Devices, Mask, Places, Tokens, Traits, Values
from protocols.question import Question
from protocols.randomness.keystream import Draws, Keyring
from protocols.randomness.sampling import below, uniform
from protocols.scheme import Scheme
from protocols.survey.attribute import Attribute


class Respondent:
    """The answering side of a survey, for the devices of one keyring."""

    def __init__(self, scheme: Scheme, keyring: Keyring) -> None:
        self.scheme = scheme
        self.keyring = keyring
        self._survey = scheme.survey.id, scheme.fingerprint

    def sampled(self, devices: Devices) -> Column:
        """The question each device was given for life (its place); only where the solution samples."""
        return self.scheme.sampled.sample(self.keyring.draws(("sampled", *self._survey), devices))

    def places(self, devices: Devices) -> Column:
        """At which place of every `one_in` periods each device answers: 0 to one_in - 1, drawn once for life."""
        return uniform(self.scheme.survey.one_in).sample(self.keyring.draws(("place", *self._survey), devices))

    def unlisted(self, attribute: Attribute, devices: Devices) -> Values:
        """What stands for a value that is not listed, or missing: `other`, or one value drawn evenly, once for life."""
        if attribute.other is not None:
            return np.full(len(devices), attribute.values.index(attribute.other), dtype=np.int64)
        draws = self.keyring.draws(("unlisted", *self._survey, attribute.name), devices)
        return below(attribute.k, draws.blocks(1).view("<u8")[:, 0]).astype(np.int64)

    def answering(self, devices: Devices, period: int) -> Mask:
        """Which devices answer in a period; the others report nothing but their presence."""
        if not self.scheme.takes_turns:
            return np.ones(len(devices), dtype=np.bool_)
        return np.asarray(self.places(devices) == period % self.scheme.survey.one_in)

    def asked(self, devices: Devices, period: int) -> Iterator[tuple[tuple[Question, ...], Places]]:
        """Which questions are answered by which rows in a period; presence-only rows come last, with no question."""
        answering = self.answering(devices, period)
        questions = self.scheme.questions
        if not self.scheme.discloses:
            yield questions, np.flatnonzero(answering)
        else:
            sampled = self.sampled(devices)
            for place, question in enumerate(questions):
                yield (question,), np.flatnonzero(answering & (sampled == place))
        if self.scheme.takes_turns:
            yield (), np.flatnonzero(~answering)

    def answers(self, question: Question, devices: Devices, period: int, values: Values) -> Column:
        """What devices with these values report in a period. Memos are derived, so none need be stored.

        A store that keeps memos, for a cap or a ledger, goes through `cells`, `memoise` and `report` itself.
        """
        if not self.scheme.survey.longitudinal:
            return self.answer_once(question, devices, period, values)
        memo = self.memoise(question, devices, self.cells(question, devices, values))
        return self.report(question, devices, period, memo)

    def cells(self, question: Question, devices: Devices, values: Values) -> Values:
        """What is memoised for each device's value: the value, its hash or its bucket."""
        return question.mechanism.encoding.cells(values, self.traits(question, devices))

    def memoise(self, question: Question, devices: Devices, cells: Values) -> Column:
        """Round 1: always the same for a (device, cell)."""
        draws = self.keyring.draws(self._purpose("memo", question), devices, cells)
        return self._first_round(question, cells, draws)

    def answer_once(self, question: Question, devices: Devices, period: int, values: Values) -> Column:
        """The only round of a one-shot survey: drawn for the period, the same for every attempt at it."""
        draws = self.keyring.draws(self._purpose("once", question), devices, period)
        return self._first_round(question, values, draws)

    def report(self, question: Question, devices: Devices, period: int, memo: Column) -> Column:
        """Round 2: the same for every attempt at one period."""
        draws = self.keyring.draws(self._purpose("report", question), devices, period)
        answers = question.mechanism.report(memo, draws)
        return question.mechanism.encoding.finish(answers, self.traits(question, devices))

    def tokens(self, devices: Devices, period: int) -> Tokens:
        """Non-zero, unpredictable, the same for every attempt at one period, unlinkable between periods."""
        words = self.keyring.draws(("token", *self._survey), devices, period).blocks(1).view("<u8")
        return np.where(words[:, 0] != 0, words[:, 0], words[:, 1] | np.uint64(1))

    def _first_round(self, question: Question, cells: Values, draws: Draws) -> Column:
        """Round 1 of the truth; of a fake where the device was given another attribute."""
        mechanism = question.mechanism
        kind = question.fake_kind
        if kind is None:
            return mechanism.memoise(cells, draws)
        own = self.sampled(draws.devices) == self.scheme.place(question)
        return mechanism.encoding.hide(cells, own, kind, question.fake, mechanism.first, draws)

    def traits(self, question: Question, devices: Devices) -> Traits:
        """What each device keeps for life and shows in its answers to this question: its hash or its buckets."""
        encoding = question.mechanism.encoding
        if not encoding.lifelong:
            return None
        return encoding.traits(self.keyring.draws(self._purpose("trait", question), devices))

    def _purpose(self, what: str, question: Question) -> tuple[str, ...]:
        return (what, *self._survey, question.name)
