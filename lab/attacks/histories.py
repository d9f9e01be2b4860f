"""Two histories that coins choose between, and how likely reports are under each (docs/audit.md, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from lab.attacks.guessing import likelihood
from lab.attacks.likelihoods import bit_evidence, chunks
from lab.attacks.observed import Observed
from lab.audit.closed.guessing import bit_counts
from protocols.arrays import Floats, Mask, PackedBits, Places, Whole
from protocols.mechanisms import Flip
from protocols.privacy import held
from protocols.question import Question
from protocols.scheme import Scheme

History = Sequence[int]  # a value for each period
Law = tuple[Floats, Floats, Floats]  # ln of the ratio, its chance under heads, under tails


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
            likely, fake = _likelihood(observed, question, side[question.name], periods, rows[own], coins.change)
            total[place, own] = likely - fake
        sides.append(np.logaddexp.reduce(total, axis=0) if asked[0].faked else total.sum(axis=0))
    return np.asarray(sides[0] - sides[1])


def _likelihood(
    observed: Observed, question: Question, history: History, periods: range, rows: Places, absolute: bool
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
        seen = likelihood(observed, question, rows, within, absolute)
        own += seen.values[:, cell]
        fake += 0.0 if seen.fake is None else seen.fake
    return own, fake


def law_of(question: Question, t: int, memoised: bool) -> Law | None:
    """The exact law of the ratio between two values of one attribute; None where it has no simple form."""
    noise, encoding = question.mechanism.one_report, question.mechanism.encoding
    if question.faked or not isinstance(noise, Flip) or encoding.lifelong:
        return None
    if not isinstance(encoding.answer, PackedBits):
        if t > 1:
            return None
        apart = 1.0 if encoding.memoisable else 1 - encoding.seen(noise).q  # that a hash tells both values apart
        score, own, other = log(noise.p / noise.q), apart * noise.p, apart * noise.q
        rest = max(0.0, 1 - own - other)
        return np.array([score, -score, 0.0]), np.array([own, other, rest]), np.array([other, own, rest])
    if t > 1 and not memoised:
        return None
    (set_bit, unset), evidence = bit_counts(question, t), bit_evidence(question, t)
    scores = (evidence[:, None] - evidence[None, :]).ravel()
    return scores, np.outer(set_bit, unset).ravel(), np.outer(unset, set_bit).ravel()


def law_of_reports(scheme: Scheme, t: int) -> Law | None:
    """The law of the ratio of whole reports between two tuples; None where it has no simple form.

    Known where each report answers one attribute, and for one report of symbols among even fakes.
    """
    if scheme.takes_turns:
        return None
    if scheme.questions[0].faked:
        return _law_among_fakes(scheme) if t == 1 else None
    laws = [law_of(question, t, scheme.survey.longitudinal) for question in scheme.questions]
    known = [law for law in laws if law is not None]
    if len(known) < len(laws) or (len(laws) > 1 and not scheme.discloses):
        return None
    drawn = [float(question.drawn) for question in scheme.questions]
    weighted = [(scores, heads * one, tails * one) for (scores, heads, tails), one in zip(known, drawn, strict=True)]
    scores, heads, tails = (np.concatenate(parts) for parts in zip(*weighted, strict=True))
    return scores, heads, tails


def _law_among_fakes(scheme: Scheme) -> Law | None:
    """Of one report, from how many answers name the value of heads, and of tails; attributes must be alike."""
    first, d = scheme.questions[0], len(scheme.questions)
    noise = first.mechanism.one_report
    alike = all(q.k == first.k and q.mechanism.one_report == noise for q in scheme.questions)
    even = all(q.fake is not None and np.ptp(q.fake) == 0 for q in scheme.questions)
    if not (alike and even and isinstance(noise, Flip) and first.mechanism.encoding.exclusive):
        return None
    fakes = np.zeros((d + 1, d + 1))  # [named heads, named tails] of d - 1 fakes
    fakes[0, 0] = 1.0
    named = 1 / first.k
    for _ in range(d - 1):
        fakes = fakes * (1 - 2 * named) + named * (np.roll(fakes, 1, axis=0) + np.roll(fakes, 1, axis=1))
    rest = max(0.0, 1 - noise.p - noise.q)
    sides = [
        rest * fakes + own * np.roll(fakes, 1, axis=0) + other * np.roll(fakes, 1, axis=1)
        for own, other in ((noise.p, noise.q), (noise.q, noise.p))
    ]
    likely = np.log(np.arange(d + 1) * noise.gain + d * noise.q)
    return (likely[:, None] - likely[None, :]).ravel(), sides[0].ravel(), sides[1].ravel()
