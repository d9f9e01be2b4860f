"""Two histories that coins choose between, and how likely reports are under each (docs/audit.md, section 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.attacks.guessing import likelihood
from lab.attacks.likelihoods import chunks
from lab.attacks.observed import Observed
from protocols.arrays import Floats, Mask, Places, Whole
from protocols.privacy import held
from protocols.question import Question
from protocols.scheme import Scheme

History = Sequence[int]  # a value for each period


@dataclass(frozen=True)
class Coins:
    """Two histories of every attribute: of devices whose coin shows heads, and of those with tails."""

    heads: dict[str, History]
    tails: dict[str, History]

    @property
    def change(self) -> bool:
        """Whether any value changes."""
        return any(len(set(history)) > 1 for side in (self.heads, self.tails) for history in side.values())

    def values(self, coins: Mask, period: int) -> dict[str, Whole]:
        """The values of devices in a period."""
        return {name: np.where(coins, self.heads[name][period], self.tails[name][period]) for name in self.heads}


def steady_coins(scheme: Scheme, periods: int, attribute: str | None = None) -> Coins:
    """Two tuples that never change and are as far apart as two can be: in all attributes, or in one.

    Ordered values are furthest apart at the ends of their range, values among fakes where fakes are rarest.
    """
    ends = {}
    for question in scheme.questions:
        if question.axes:
            continue  # its pairs follow from the values of its attributes
        first, last = 0, question.k - 1
        if question.fake is not None:
            first, last = (int(place) for place in np.argsort(question.fake, kind="stable")[:2])
        ends[question.name] = first, last if attribute in (None, question.name) else first
    return _coins(scheme, *({name: (pair[side],) * periods for name, pair in ends.items()} for side in (0, 1)))


def returning_coins(scheme: Scheme, periods: int) -> Coins:
    """A value that never changes, against two that alternate: an observer may learn that a value came back."""
    names = [attribute.name for attribute in scheme.survey.attributes]
    alternate = tuple(period % 2 for period in range(periods))
    return _coins(scheme, dict.fromkeys(names, (0,) * periods), dict.fromkeys(names, alternate))


def _coins(scheme: Scheme, heads: Mapping[str, History], tails: Mapping[str, History]) -> Coins:
    """Histories of all questions, from those of the attributes."""

    def of_questions(side: Mapping[str, History]) -> dict[str, History]:
        values = {name: np.array(history) for name, history in side.items()}
        return {question.name: question.places(values).tolist() for question in scheme.questions}

    return Coins(of_questions(heads), of_questions(tails))


def ratios(observed: Observed, coins: Coins, periods: range, shown: str | None = None) -> tuple[Places, Floats]:
    """Of devices that report in all these periods: ln of the likelihood of their reports under heads against tails.

    `shown`: only the answers to this attribute are looked at.
    """
    rows = np.flatnonzero(observed.there(periods) & (True if shown is None else observed.answering(shown)))
    width = sum(question.k for question in observed.scheme.questions)
    parts = [_ratios(observed, coins, periods, some, shown) for some in chunks(rows, width)]
    return rows, np.concatenate([np.zeros(0), *parts])


def _ratios(observed: Observed, coins: Coins, periods: range, rows: Places, shown: str | None) -> Floats:
    scheme, sides = observed.scheme, []
    asked = [question for question in scheme.questions if shown in (None, question.name)]
    for side in (coins.heads, coins.tails):
        total = np.zeros((len(asked), len(rows)))
        for place, question in enumerate(asked):
            own = np.flatnonzero(observed.answering(question.name)[rows])
            likely, fake = _likelihood(observed, question, side[question.name], periods, rows[own])
            total[place, own] = likely - fake
        sides.append(np.logaddexp.reduce(total, axis=0) if asked[0].faked else total.sum(axis=0))
    return np.asarray(sides[0] - sides[1])


def _likelihood(
    observed: Observed, question: Question, history: History, periods: range, rows: Places
) -> tuple[Floats, Floats]:
    """ln of the likelihood of devices' answers under a history, and if they are fake.

    Reports of the same value come from one memo; a cap decides which memo a device goes on with.
    """
    survey = observed.scheme.survey
    cells = tuple(history[period] for period in periods)
    if survey.longitudinal:
        cells = held(cells, survey.memo_cap)
    own, fake = np.zeros(len(rows)), np.zeros(len(rows))
    for cell in dict.fromkeys(cells):
        within = [period for period, at in zip(periods, cells, strict=True) if at == cell]
        seen = likelihood(observed, question, rows, within)
        own += seen.values[:, cell]
        fake += 0.0 if seen.fake is None else seen.fake
    return own, fake
