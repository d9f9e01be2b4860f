"""The central figure: what readers of published results learn about one device (PROTOCOLS 11).

With memos, a reader of other periods may know everybody's memos, so only round 2 hides. Between any two memos, periods
compose; where the victim's value never changes, its own memo contracts what is left (Balle, Barthe, Gaboardi 2018).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, inf, log, log1p, log2, log10
from typing import Literal

import numpy as np
from pydantic import Field

from protocols.arrays.columns import PackedBits
from protocols.mechanisms.encodings import bit_flip
from protocols.mechanisms.lifelong import Hashed, Threshold
from protocols.mechanisms.rounds import Flip
from protocols.privacy.central.families import Seen, walks_of
from protocols.privacy.central.walks import Walks, losses_of, quantile, together
from protocols.privacy.guarantees import Guarantees
from protocols.question import Question
from protocols.survey.model import Survey
from protocols.survey.names import Strict

DELTA = 1e-8
FINE, COARSE = 100, 1000  # steps of the grid of losses in the least spread of a release; at most in the largest one
FEW = 8  # numbers of answers that are kept apart; more are rounded down to classes of 1 %
CentralRelation = Literal["constant", "any"]


class CentralLoss(Strict):
    """The largest log-ratio that a reader of published results can find, but for a chance of delta."""

    epsilon: float | None
    delta: float
    relation: CentralRelation
    periods: int
    crowd: int | None
    forged: float = 0.0
    release: Literal["totals"] = "totals"
    by_attribute: dict[str, float] = Field({})
    why: str | None = None


def central(
    promise: Guarantees,
    crowds: Mapping[str, Sequence[int]],
    *,
    delta: float = DELTA,
    relation: CentralRelation = "constant",
    forged: float = 0.0,
) -> CentralLoss:
    """The figure of a survey with these numbers of answers to each attribute, by period; 0: not published.

    It holds beside the results of other periods. One report has no history: of one period, any is constant.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> from protocols.scheme import Scheme
    >>> scheme = Scheme(parse_survey('''
    ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2,
    ...  attributes: [{name: gender, values: [a, b, c]}]}'''))
    >>> [central(scheme.guarantees, {"gender": [3250] * days}).epsilon for days in (1, 7)]
    [0.271, 0.756]
    """
    asked = [question for question in promise.questions if any(crowds.get(question.name, ()))]
    published = {question.name: crowds[question.name] for question in asked}
    periods = max(map(len, published.values()), default=0)
    survey, why = promise.survey, _why_none(promise.survey, asked)
    figures: dict[str, float] = {}
    if why is None:
        hidden = _noise(promise, delta / 100 / periods / len(asked))
        honest = {
            name: [n and max(1, floor((n - hidden) * (1 - forged))) for n in sizes] for name, sizes in published.items()
        }
        reader = _Reader(promise, honest, delta, relation if periods > 1 else "constant")
        figures = {question.name: reader.figure([question]) for question in asked}
        # Two histories may differ in several attributes that a device answers: fakes have memos, too.
        fakes = survey.solution.startswith("rs") and survey.longitudinal and reader.relation == "any"
        whole = reader.figure(asked) if survey.solution == "spl" or fakes else max(figures.values())
    return CentralLoss(
        epsilon=None if why else round_up(whole),
        delta=delta,
        relation=relation,
        periods=periods,
        crowd=min((n for sizes in published.values() for n in sizes if n), default=None),
        forged=forged,
        by_attribute={name: round_up(figure) for name, figure in figures.items()},
        why=why,
    )


def _why_none(survey: Survey, asked: Sequence[Question]) -> str | None:
    """Why there is no figure."""
    for question in asked:
        if question.attribute.placed:
            return f"{question.name} is a place: what is far away is never reported, so a crowd does not hide it"
        if survey.longitudinal and question.mechanism.second is None:
            return "memos are sent: the results of two periods together show one"
    return None if asked else "nothing is published"


def round_up(figure: float) -> float:
    """To three digits.

    >>> round_up(0.27041), round_up(0.0060), round_up(4.0)
    (0.271, 0.006, 4.0)
    """
    digits = 2 - floor(log10(figure)) if 0 < figure < inf else 0
    return ceil(figure * 10.0**digits * (1 - 1e-12)) / 10.0**digits if digits else figure


@dataclass(frozen=True)
class _Reader:
    """Who reads all that is published of these honest answers."""

    promise: Guarantees
    honest: Mapping[str, Sequence[int]]
    delta: float
    relation: CentralRelation

    def figure(self, questions: Sequence[Question]) -> float:
        """Where these attributes differ, not rounded: never more than what reports tell, or noise on counts hides."""
        periods = max(len(self.honest[question.name]) for question in questions)
        local, noise = replace(self.promise, questions=tuple(questions)), self.promise.presence
        bound = (local.constant(periods) if self.relation == "constant" else local.any(periods)).whole
        noised = inf if noise is None else 2 * noise.supports_epsilon * periods
        return self._composed(questions, most=min(inf if bound is None else bound, noised))

    def _composed(self, questions: Sequence[Question], most: float) -> float:
        """The composition, or `most` where it is more."""
        memos = self.promise.survey.longitudinal
        releases: list[_Releases] = []
        same, spent = 1.0, 0.0  # the chance that both values have the same memos; how much of delta is spent
        share = self.delta / 100 / len(questions)
        for question in questions:
            sizes = _classes(_answered(self.honest[question.name], self.promise.survey.one_in))
            constant = self.relation == "constant" or len(sizes) == 1
            same *= 1 - _apart(question) if memos and constant else 0.0
            copies, encoding = 1, question.mechanism.encoding
            if memos and isinstance(encoding.memo, PackedBits):
                copies = 2 if constant else _differing(question, 10 * share / len(sizes))
                spent += 0.0 if constant else 10 * share
            hashed = isinstance(encoding, Hashed | Threshold)
            if hashed or self.promise.presence is not None:
                spent += share
            crowds: Counter[int] = Counter()
            for size, times in Counter(sizes).items():
                # The victim's hash or slot is known: its crowd are answers with the same, always but for a chance.
                crowd = 1 + quantile(size - 1, 1 / encoding.trait_count, share / len(sizes)) if hashed else size
                crowds[crowd] += copies * times
            seen: Seen = "second" if memos else "report"
            releases += [_Releases(question, crowd, seen, times) for crowd, times in crowds.items()]
        apart = 1 - same

        def contracted(epsilon: float) -> float:
            return float(np.logaddexp(log1p(-apart), log(apart) + epsilon)) if apart < 1 else epsilon

        for epsilon in _rising(releases, (self.delta - spent) / apart):
            if contracted(epsilon) >= most:
                return most
        return contracted(epsilon)


@dataclass(frozen=True)
class _Releases:
    """The counts of one question among so many answers, so many times."""

    question: Question
    crowd: int
    seen: Seen
    times: int

    @property
    def walks(self) -> Walks:
        return walks_of(self.question, self.crowd, self.seen)


def _rising(releases: Sequence[_Releases], delta: float) -> Iterator[float]:
    """The compositions of more and more releases: of 1, 2, 4 .. smallest crowds, and at last of all.

    None is below the one before, so who has found one that is enough need not go on. For the losses L of some releases
    and M of further ones, which are independent, delta(eps) is the mean of (1 - e^(eps - L - M))+, convex in e^-M. The
    mean of e^-M is at most 1: it is the second law's mass where the first has any, and rounding M up lowers it. So by
    Jensen's inequality, given L, the mean is at least (1 - e^(eps - L))+, and delta(eps) at least that of L alone.
    """
    by_crowd = sorted(releases, key=lambda each: each.crowd)
    if sum(each.times for each in releases) == 1:
        yield by_crowd[0].walks.epsilon(delta)
        return
    step = _step(by_crowd)
    reached = 1
    while reached < len(by_crowd):
        yield _together(by_crowd[:reached], step, delta)
        reached *= 2
    yield _together(by_crowd, step, delta)


def _step(by_crowd: Sequence[_Releases]) -> float:
    """The step of the grid of losses: of each question, the smallest and the largest crowd say how far they spread."""
    smallest = {each.question.name: each for each in reversed(by_crowd)}
    largest = {each.question.name: each for each in by_crowd}
    spreads = [each.walks.spread for each in (*smallest.values(), *largest.values())]
    # Powers of 2^(1/8): numbers of answers that change a little have the same grid, so losses are kept from day to day.
    step = max(min(spreads) / FINE, max(spreads) / COARSE)
    return float(2.0 ** (floor(8 * log2(step)) / 8))


def _together(releases: Sequence[_Releases], step: float, delta: float) -> float:
    """The composition; infinity where the crowd hides nothing."""
    parts = []
    for each in releases:
        losses = losses_of(each.walks, step)
        if losses.infinite > delta:
            return inf
        parts.append((losses, each.times))
    return together(parts).epsilon(delta, sum(each.walks.most * each.times for each in releases))


def _answered(sizes: Sequence[int], one_in: int) -> list[int]:
    """The periods in which a device answers: with one_in one of so many, the one with the fewest answers."""
    groups = [[n for n in sizes[start : start + one_in] if n] for start in range(0, len(sizes), one_in)]
    return [min(group) for group in groups if group]


def _classes(sizes: list[int]) -> list[int]:
    if len(set(sizes)) <= FEW:
        return sizes
    return [min(n, floor(1.01 ** floor(log(n) / log(1.01)))) for n in sizes]


def _apart(question: Question) -> float:
    """The largest total variation between the memos of two values."""
    first = question.mechanism.first
    if isinstance(first, Flip):
        return first.gain
    return max(float(np.abs(first.matrix - row).sum(axis=1).max()) / 2 for row in first.matrix)


def _differing(question: Question, chance: float) -> int:
    """How many bits of two memos differ, but for a chance."""
    others, first = question.mechanism.encoding.memo.count - 2, bit_flip(question.mechanism.first)
    return 2 + others - quantile(others, 1 - 2 * first.q * (1 - first.q), chance)


def _noise(promise: Guarantees, chance: float) -> int:
    """By how much a number of answers may be below the published one, but for a chance (Chernoff)."""
    if promise.presence is None:
        return 0
    scale = promise.presence.answers_scale()
    if scale is None:  # the number is not released
        return 0
    rates = np.linspace(0.01, 0.99, 99)
    logs = -np.log1p(-(rates**2))  # of Laplace noise, which is wider than geometric noise
    return ceil(float(((logs - log(chance)) / rates).min()) * scale)
