"""A device's memos, reports and tokens. A device draws the same alone and among a million others.

All draws derive from the keyring (PROTOCOLS 8). Memos and lifelong traits are drawn over (question, cell), and the
sampled attribute and the turn over all questions of the survey: surveys that ask the same get the same memos. Round 2,
one-shot noise and tokens are drawn over (survey, period), where `survey` is its id and its fingerprint; they may come
from a key of the period instead.

Round 1 is drawn in the question's own order of values: cells and memos are in that order, answers in the survey's.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from protocols.arrays.aliases import Column, Devices, Mask, Places, Tokens, Traits, Values
from protocols.mechanisms.encodings import Direct, table_of
from protocols.mechanisms.rounds import Flip
from protocols.question import Question
from protocols.randomness.keystream import Draws, Keyring
from protocols.randomness.sampling import below, uniform
from protocols.scheme import Scheme
from protocols.survey.sets import NOTHING, with_paddings

UNKNOWN = -1
"""Stands among values, which are numbered from 0, for one that is not listed or missing."""


class Respondent:
    """The answering side of a survey, for the devices of one keyring.

    `of_period` gives what round 2, one-shot noise and tokens of a period are drawn from; by default the keyring.
    """

    def __init__(self, scheme: Scheme, keyring: Keyring, of_period: Callable[[int], Keyring] | None = None) -> None:
        self.scheme = scheme
        self.keyring = keyring
        self._of_period = of_period or (lambda period: keyring)
        self._survey = scheme.survey.id, scheme.fingerprint

    def sampled(self, devices: Devices) -> Column:
        """The question each device was given for life (its place); only where the solution samples."""
        draws = self.keyring.draws(("sampled", self.scheme.sampled_id), devices)
        drawn = self.scheme.sampled(self.scheme.by_id).sample(draws)
        return np.array(self.scheme.by_id, dtype=drawn.dtype)[drawn]

    def places(self, devices: Devices) -> Column:
        """At which place of every `one_in` periods each device answers: 0 to one_in - 1, drawn once for life."""
        draws = self.keyring.draws(("place", self.scheme.turn_id), devices)
        return uniform(self.scheme.survey.one_in).sample(draws)

    def values(self, question: Question, devices: Devices, values: Mapping[str, Values], period: int) -> Values:
        """Each device's value among those asked, from its values of attributes; of a set, the element drawn.

        Where one is not listed or missing (UNKNOWN), another stands for it: whether a person reports must not tell it.
        """
        if question.sets:
            return self._element(question, devices, values[question.name], period)
        listed = dict(values)
        for axis, source in enumerate(question.sources):
            unlisted = np.flatnonzero(values[source.name] == UNKNOWN)
            if len(unlisted):
                listed[source.name] = values[source.name].astype(np.int64)
                listed[source.name][unlisted] = self._unlisted(question, axis, devices[unlisted])
        return question.places(listed)

    def _element(self, question: Question, devices: Devices, sets: Values, period: int) -> Values:
        """The element of each padded set with the lowest priority; the smaller one of two that have the same.

        With memos priorities are lifelong: so a set that stays keeps its memo, and a changed value seldom moves it.
        """
        keyring, purpose = self.keyring, self._lifelong("draw", question)
        if not self.scheme.survey.longitudinal:
            keyring, purpose = self._of_period(period), ("draw", *self._survey, question.name)
        draws = keyring.draws(purpose, devices, 0 if self.scheme.survey.longitudinal else period)
        own = np.where(sets == NOTHING, NOTHING, question.places_in_order[sets])
        elements = with_paddings(own, question.items.k, question.several)
        there = np.nonzero(elements < question.k)
        priorities = np.full(elements.shape, np.iinfo(np.uint64).max)
        priorities[there] = draws.further(there[0], elements[there].astype(np.int64))
        return np.asarray(question.order[elements[np.arange(len(sets)), priorities.argmin(axis=1)]])

    def _unlisted(self, question: Question, axis: int, devices: Devices) -> Values:
        """`other`, or one value that is drawn evenly, once for life and question, for all that are not listed."""
        source = question.sources[axis]
        if source.other is not None:
            return np.full(len(devices), source.values.index(source.other))
        draws = self.keyring.draws(self._lifelong("unlisted", question), devices, axis)
        order = np.array(sorted(range(source.k), key=lambda place: source.values[place].encode()))
        drawn = below(source.k, draws.blocks(1).view("<u8")[:, 0])
        return (order if question.axes else question.order)[drawn]

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

        A store that keeps memos, for a cap or a ledger, goes through `cells`, `memoise`, `listed` and `report` itself.
        """
        if not self.scheme.survey.longitudinal:
            return self.answer_once(question, devices, period, values)
        memo = self.memoise(question, devices, self.cells(question, devices, values))
        return self.report(question, devices, period, self.listed(question, memo))

    def cells(self, question: Question, devices: Devices, values: Values) -> Values:
        """What is memoised for each device's value: its place in the question's own order, its hash or its bucket."""
        encoding = question.mechanism.encoding
        if encoding.lifelong:
            return encoding.cells(values, self.traits(question, devices))
        return question.places_in_order[values]

    def memoise(self, question: Question, devices: Devices, cells: Values) -> Column:
        """Round 1: always the same for a (device, cell)."""
        draws = self.keyring.draws(self._lifelong("memo", question), devices, cells)
        return self._first_round(question, cells, draws)

    def listed(self, question: Question, memo: Column) -> Column:
        """Memos in the order in which the survey lists its values."""
        return memo if question.as_listed else question.mechanism.encoding.reordered(memo, question.order)

    def answer_once(self, question: Question, devices: Devices, period: int, values: Values) -> Column:
        """The only round of a one-shot survey: drawn for the period, the same for every attempt at it."""
        draws = self._of_period(period).draws(("once", *self._survey, question.name), devices, period)
        if not question.numeric:
            return self._first_round(question, values, draws)
        answers = self._first_round(question, self.cells(question, devices, values), draws)
        return question.mechanism.encoding.finish(answers, self.traits(question, devices))

    def report(self, question: Question, devices: Devices, period: int, memo: Column) -> Column:
        """Round 2 of a memo as `listed`: the same for every attempt at one period."""
        draws = self._of_period(period).draws(("report", *self._survey, question.name), devices, period)
        answers = question.mechanism.report(memo, draws)
        return question.mechanism.encoding.finish(answers, self.traits(question, devices))

    def tokens(self, devices: Devices, period: int) -> Tokens:
        """Non-zero, unpredictable, the same for every attempt at one period, unlinkable between periods."""
        words = self._of_period(period).draws(("token", *self._survey), devices, period).blocks(1).view("<u8")
        return np.where(words[:, 0] != 0, words[:, 0], words[:, 1] | np.uint64(1))

    def _first_round(self, question: Question, cells: Values, draws: Draws) -> Column:
        """Round 1 of the truth; of a fake where the device was given another attribute (PROTOCOLS 4).

        A fake is the vector of no value (`zero`), or a drawn value: bare, or perturbed like a true one (`noisy`).
        """
        mechanism, fakes = question.mechanism, question.fake
        encoding, noise = mechanism.encoding, mechanism.first
        if question.fake_kind is None:
            return mechanism.memoise(cells, draws)
        own = self.sampled(draws.devices) == self.scheme.place(question)
        if fakes is not None and question.fake_kind == "bare":
            assert isinstance(encoding, Direct) and isinstance(noise, Flip), "only symbols have bare fakes"
            return encoding.hide(cells, own, fakes, noise, draws)
        drawn = encoding.k if fakes is None else table_of(tuple(fakes.tolist())).sample(draws.fork(2))
        return mechanism.memoise(np.where(own, cells, drawn), draws)

    def traits(self, question: Question, devices: Devices) -> Traits:
        """What each device keeps for life and shows in its answers to this question: its hash, buckets or slot."""
        encoding = question.mechanism.encoding
        if not encoding.lifelong:
            return None
        traits = encoding.traits(self.keyring.draws(self._lifelong("trait", question), devices))
        return encoding.reordered_traits(traits, question.order)

    def _lifelong(self, what: str, question: Question) -> tuple[str, ...]:
        return what, self.scheme.memo_ids[question.name], question.name
