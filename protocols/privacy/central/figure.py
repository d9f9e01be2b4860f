"""The central figure: what readers of published results learn about one device (PROTOCOLS 11).

Two collections differ in the values of one device over time; who reports when, and what devices keep for life, is the
same in both. The reader knows all other devices' values. What is published are counts over all gaps, of closed periods
(surveys with `central`). Forged answers hide nobody: only honest ones are a crowd.

With memos, a reader of other periods may know everybody's memos, so only round 2 hides. Between any two memos, periods
compose; where the victim's value never changes, its own memo contracts what is left (Balle, Barthe, Gaboardi 2018).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, inf, log, log1p, log10
from typing import Literal, Protocol

import numpy as np
from pydantic import Field

from protocols.arrays.columns import PackedBits
from protocols.mechanisms.encodings import bit_flip
from protocols.mechanisms.lifelong import Hashed
from protocols.mechanisms.rounds import Flip
from protocols.privacy.central.composition import together
from protocols.privacy.central.families import walks_of
from protocols.privacy.central.walks import Walks, losses_of, quantile
from protocols.privacy.guarantees import Guarantees
from protocols.privacy.presence import PresenceNoise
from protocols.question import Question
from protocols.survey.model import Survey
from protocols.survey.names import Strict

DELTA = 1e-8
GRID = 400  # steps of the grid of losses in the epsilon of one release
FEW = 8  # numbers of answers that are kept apart; more are rounded down to classes of 1 %
CentralRelation = Literal["constant", "any"]


class Compiled(Protocol):
    """What is known of a survey: `Scheme`."""

    survey: Survey
    questions: tuple[Question, ...]

    @property
    def presence(self) -> PresenceNoise | None: ...


class CentralLoss(Strict):
    """The largest log-ratio that a reader of published results can find, but for a chance of delta."""

    epsilon: float | None = Field(description="rounded up; null: no figure, see why")
    delta: float = Field(description="the chance of anything beyond")
    relation: CentralRelation = Field(description="between two histories: constant, or any two")
    periods: int = Field(description="how many published periods the device may have answered in")
    crowd: int | None = Field(description="the least number of answers to an attribute in a period, as published")
    forged: float = Field(0.0, description="the share of them that is assumed to hide nobody: forged, or known")
    release: Literal["totals"] = Field("totals", description="what is published: counts over all gaps")
    by_attribute: dict[str, float | None] = Field({}, description="the same where only one attribute differs")
    why: str | None = Field(None, description="why there is no figure")


def central(
    scheme: Compiled,
    crowds: Mapping[str, Sequence[int]],
    *,
    delta: float = DELTA,
    relation: CentralRelation = "constant",
    forged: float = 0.0,
    alone: bool = False,
) -> CentralLoss:
    """The figure of a survey with these numbers of answers to each attribute, by period; 0: not published.

    `alone`: of one period if no other one is ever published; without it the figure holds beside other periods.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> from protocols.scheme import Scheme
    >>> scheme = Scheme(parse_survey('''
    ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2,
    ...  attributes: [{name: gender, values: [a, b, c]}]}'''))
    >>> [central(scheme, {"gender": [3250] * days}).epsilon for days in (1, 7)]
    [0.271, 0.756]
    """
    published = {name: sizes for name, sizes in crowds.items() if any(sizes)}
    periods = max(map(len, published.values()), default=0)
    least = min((n for sizes in published.values() for n in sizes if n), default=None)
    stated = CentralLoss(epsilon=None, delta=delta, relation=relation, periods=periods, crowd=least, forged=forged)
    if not published:
        return _without(stated, "nothing is published")
    if alone and periods > 1:
        return _without(stated, "several periods are not seen alone")
    if scheme.survey.longitudinal and not alone and all(q.mechanism.second is None for q in scheme.questions):
        return _without(stated, "the memo is sent: two periods together show it")
    hidden = _noise(scheme, delta)
    honest = {
        name: [n and max(1, floor((n - hidden) * (1 - forged))) for n in sizes] for name, sizes in published.items()
    }
    reader = _Reader(scheme, honest, delta, relation if periods > 1 else "constant", alone)  # one report has no history
    asked = [question for question in scheme.questions if question.name in honest]
    figures = {question.name: reader.figure([question]) for question in asked}
    stated.by_attribute.update({name: figure and round_up(figure) for name, figure in figures.items()})
    for name, figure in figures.items():
        if figure is None:
            return _without(stated, f"{name} is a place")
    whole = reader.figure(asked) if reader.all_differ else max(figure or 0.0 for figure in figures.values())
    return stated.model_copy(update={"epsilon": round_up(whole or 0.0)})


def collector(scheme: Compiled, cell: int, *, delta: float = DELTA, periods: int = 1) -> CentralLoss:
    """For who sees shuffled reports: `cell` of them have the same period, gap and attribute, in one batch."""
    stated = CentralLoss(epsilon=None, delta=delta, relation="constant", periods=periods, crowd=cell)
    whole = len(scheme.questions) > 1 and scheme.survey.solution != "smp"
    bits = any(isinstance(question.mechanism.encoding.memo, PackedBits) for question in scheme.questions)
    if periods > 1 and (whole or (bits and scheme.survey.longitudinal)):
        return _without(stated, "answers that are seen together link the reports of several periods")
    if not whole:
        return central(scheme, {q.name: [cell] * periods for q in scheme.questions}, delta=delta, alone=periods == 1)
    beside = [[other for other in scheme.questions if other is not q] for q in scheme.questions]
    found = [
        walks_of(q, cell, "report", others, tuples=True) for q, others in zip(scheme.questions, beside, strict=True)
    ]
    if scheme.survey.solution == "spl" or None in found:
        return _without(stated, "all answers of a report are seen together")
    return stated.model_copy(update={"epsilon": round_up(max(walks.epsilon(delta) for walks in found if walks))})


def constant_presence_cap(scheme: Compiled, crowd: int, *, delta: float = DELTA) -> CentralLoss:
    """All results for ever, if all values are constant and `crowd` devices always report in the same periods.

    It needs facts about other people, so it is not shown.
    """
    memos = [replace(question, mechanism=replace(question.mechanism, second=None)) for question in scheme.questions]
    reader = _Reader(scheme, {question.name: [crowd] for question in memos}, delta, "constant", alone=True)
    figures = [reader.figure([question]) for question in memos]
    stated = CentralLoss(epsilon=None, delta=delta, relation="constant", periods=1, crowd=crowd)
    if None in figures or not scheme.survey.longitudinal:
        return _without(stated, "there are no memos, or of places")
    return stated.model_copy(update={"epsilon": round_up(max(figure or 0.0 for figure in figures))})


def eps_1_for(at: Callable[[float], CentralLoss], target: float) -> float | None:
    """The largest eps_1, in hundredths, whose figure is at most `target`; None if there is none.

    `at` gives the figure of an eps_1, with which it rises.
    """
    low, high = 0, 1000
    while high - low > 1:
        middle = (low + high) // 2
        found = at(middle / 100).epsilon
        low, high = (middle, high) if found is not None and found <= target else (low, middle)
    return low / 100 if low else None


def round_up(figure: float) -> float:
    """To three digits.

    >>> round_up(0.27041), round_up(0.0060), round_up(4.0)
    (0.271, 0.006, 4.0)
    """
    digits = 2 - floor(log10(figure)) if 0 < figure < inf else 0
    return ceil(figure * 10.0**digits * (1 - 1e-12)) / 10.0**digits if digits else figure


def _without(stated: CentralLoss, why: str) -> CentralLoss:
    return stated.model_copy(update={"epsilon": None, "why": why})


@dataclass(frozen=True)
class _Reader:
    """Who reads all that is published of these honest answers."""

    scheme: Compiled
    honest: Mapping[str, Sequence[int]]
    delta: float
    relation: CentralRelation
    alone: bool

    @property
    def all_differ(self) -> bool:
        """Whether two histories may differ in several attributes that a device answers: fakes have memos, too."""
        survey = self.scheme.survey
        fakes = survey.solution.startswith("rs") and survey.longitudinal and self.relation == "any"
        return survey.solution == "spl" or fakes

    def figure(self, questions: Sequence[Question]) -> float | None:
        """Where these attributes differ, not rounded; None for places."""
        periods = max(len(self.honest[question.name]) for question in questions)
        local, noise = Guarantees(self.scheme.survey, tuple(questions)), self.scheme.presence
        bound = (local.constant(periods) if self.relation == "constant" else local.any(periods)).whole
        noised = inf if noise is None else 2 * noise.supports_epsilon * periods
        composed = self._composed(questions)
        return None if composed is None else min(composed, inf if bound is None else bound, noised)

    def _composed(self, questions: Sequence[Question]) -> float | None:
        memos = self.scheme.survey.longitudinal and not self.alone
        releases: Counter[Walks] = Counter()
        same, spent = 1.0, 0.0  # the chance that both values have the same memos; how much of delta is spent
        share = self.delta / 100 / len(questions)
        for question in questions:
            sizes = _classes(_answered(self.honest[question.name], self.scheme.survey.one_in))
            constant = self.relation == "constant" or len(sizes) == 1
            same *= 1 - _apart(question) if memos and constant else 0.0
            copies, encoding = 1, question.mechanism.encoding
            if memos and isinstance(encoding.memo, PackedBits):
                copies = 2 if constant else _differing(question, 10 * share / len(sizes))
                spent += 0.0 if constant else 10 * share
            if isinstance(encoding, Hashed) or self.scheme.presence is not None:
                spent += share
            for size, times in Counter(sizes).items():
                # The victim's hash is known: its crowd are answers with the same one, in all periods but for a chance.
                hashed = isinstance(encoding, Hashed)
                crowd = 1 + quantile(size - 1, 1 / encoding.trait_count, share / len(sizes)) if hashed else size
                others = [other for other in self.scheme.questions if other.name != question.name]
                walks = walks_of(question, crowd, "second" if memos else "report", others if self.alone else None)
                if walks is None:
                    return None
                releases[walks] += copies * times
        apart = 1 - same
        epsilon = _together(releases, (self.delta - spent) / apart, self.delta)
        return float(np.logaddexp(log1p(-apart), log(apart) + epsilon)) if apart < 1 else epsilon


def _together(releases: Mapping[Walks, int], delta: float, typical: float) -> float:
    """The composition; infinity where the crowd hides nothing."""
    if sum(releases.values()) == 1:
        return next(iter(releases)).epsilon(delta)
    ones = [walks.epsilon(typical) for walks in releases]
    if any(one >= walks.most for walks, one in zip(releases, ones, strict=True)):
        return inf
    step = max(min(min(ones) / GRID, 0.02), max(ones) / GRID / 100, 1e-7)
    found = together([(losses_of(walks, step), times) for walks, times in releases.items()])
    return found.epsilon(delta, sum(walks.most * times for walks, times in releases.items()))


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


def _noise(scheme: Compiled, delta: float) -> int:
    """By how much the number of answers may be below the published one, but for a chance of delta / 100 (Chernoff)."""
    if scheme.presence is None:
        return 0
    rates = np.linspace(0.01, 0.99, 99)
    logs = -scheme.survey.horizon * np.log1p(-(rates**2))  # of Laplace noise, which is wider than geometric noise
    return ceil(float(((logs - log(delta / 100)) / rates).min()) * scheme.presence.reports_scale)
