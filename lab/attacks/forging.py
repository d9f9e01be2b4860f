"""What forged reports move, in closed form and carried out (docs/audit.md, section 6).

The estimate of places is no sum over reports, so it is made twice: of reports that are drawn from the channel, with the
same draws every time, and again with the forged reports among them. How many steps an estimate takes depends on the
draws, and what forgers gain on the steps, so the figure is a mean over several draws.
"""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from analytics.estimation import estimate, fitted_places
from lab.attacks.accuracy import Priors
from lab.attacks.observed import Observed
from lab.attacks.report import Figure, plain
from protocols.arrays import Column, Floats, PackedBits, Places
from protocols.mechanisms import FreshHash, Hashed, MatrixRound, PlanarChannel, SupportChannel
from protocols.question import Question
from protocols.scheme import Scheme

Forgery = Literal["best", "random", "lying"]
FORGED = 0.01  # the share of forged reports that figures are for
FORGERS: dict[Forgery, str] = {
    "best": "supports the target as much as a report can",
    "random": "draws its reports evenly",
    "lying": "follows the protocol with the target as its value",
}
MOST_CELLS = 4096  # of a grid for which it is done: estimates of larger ones take seconds each
DRAWS = 8  # one may be off by half of the mean


def forgery_gain(question: Question, targets: Places, forgery: Forgery) -> float:
    """How many people one forged report adds to the targets, on average."""
    channel = question.channel
    assert not isinstance(channel, PlanarChannel), "reports of places have no weight of their own"
    if forgery == "lying":  # estimates are unbiased: who follows the protocol counts once
        return 1.0
    if isinstance(channel, MatrixRound):
        votes = channel.votes[:, targets].sum(axis=1)
        return float(votes.max() if forgery == "best" else votes.mean())
    best, average = question.mechanism.encoding.forged(targets)
    supports = best if forgery == "best" else average
    return float((supports - channel.floor[targets].sum()) / channel.gain)


def moved(question: Question, targets: Places, forgery: Forgery, beta: float, shares: Floats) -> float:
    """How far a share beta of forged reports moves the estimated share of all targets together.

    >>> from protocols.scheme import Scheme
    >>> from protocols.survey_text import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1,
    ...  attributes: [{name: item, range: {last: 101}, mechanism: oue}]}'''))
    >>> round(moved(scheme.questions[0], np.arange(10), "best", 0.05, np.full(102, 1 / 102)), 2)
    1.58
    """
    return beta * (forgery_gain(question, targets, forgery) - float(shares[targets].sum()))


def moved_places(question: Question, target: int, forgery: Forgery, beta: float, shares: Floats, n: int) -> float:
    """How far a share beta of forged reports moves the estimated share of a cell, among n reports, on average."""
    channel, forged = question.channel, round(n * beta)
    assert isinstance(channel, PlanarChannel)
    random, gains, own = np.random.default_rng(0), [], np.eye(channel.k)[target]
    laws = {"best": own, "random": np.full(channel.k, 1 / channel.k), "lying": channel.support(own)}
    honest, law = channel.support(shares), laws[forgery]  # the chances of each cell to be what a report names
    for _ in range(DRAWS):
        counts = random.multinomial(n - forged, honest / honest.sum())
        after = counts + random.multinomial(forged, law / law.sum())
        gains.append(fitted_places(after, channel)[target] - fitted_places(counts, channel)[target])
    return float(np.mean(gains))


def forgeries(scheme: Scheme, priors: Priors, devices: int) -> Iterator[Figure]:
    """How far each forger moves each share, and the visitors of a window."""
    for question in forgeable(scheme):
        shares, target = priors.get(question.name, np.full(question.k, 1 / question.k)), cheapest(question)
        reports = answering(scheme, question, devices)
        yield from (forgery_figure(question, target, forgery, FORGED, shares, reports) for forgery in FORGERS)
    if scheme.survey.horizon > 1 or scheme.survey.units:
        knows = f"{FORGED:.0%} of the reports: claim to be new"
        yield plain("forge", "visitors of a window", knows, 1, FORGED)


def forgery_figure(
    question: Question, target: int, forgery: Forgery, beta: float, shares: Floats, n: int, **measured: Any
) -> Figure:
    """How far a share beta of forged reports moves the estimated share of a target, among n reports."""
    placed = question.attribute.placed
    best = (
        moved_places(question, target, forgery, beta, shares, n)
        if placed
        else moved(question, np.array([target]), forgery, beta, shares)
    )
    knows = f"{FORGED:.0%} of the reports: {FORGERS[forgery]}"
    return plain("forge", question.name, knows, 1, best, exact=not placed, **measured)


def forgeable(scheme: Scheme) -> list[Question]:
    """The questions whose forged reports have figures: not those of very large grids."""
    return [q for q in scheme.questions if not q.attribute.placed or q.k <= MOST_CELLS]


def cheapest(question: Question) -> int:
    """The value that one forged report adds most people to; of places, the cell in the middle."""
    if question.attribute.placed:  # there a report is moved nowhere else
        assert question.attribute.grid is not None
        positions = question.attribute.grid.area.positions
        return int(np.square(positions - positions.mean(axis=0)).sum(axis=1).argmin())
    return max(range(question.k), key=lambda value: forgery_gain(question, np.array([value]), "best"))


def answering(scheme: Scheme, question: Question, devices: int) -> int:
    """How many of these devices answer a question in a period."""
    return max(1, round(devices * float(question.drawn) / scheme.survey.one_in))


def forged_figures(observed: Observed) -> Iterator[Figure]:
    """How far forged reports, added to the honest ones of the first period, move the estimate of a value."""
    for question in forgeable(observed.scheme):
        rows, target = observed.answering_first(question.name), cheapest(question)
        forged = round(len(rows) * FORGED / (1 - FORGED))
        if not forged:
            continue
        honest, total = observed.answers[question.name][0][rows], len(rows) + forged
        liars = np.flatnonzero(observed.values[question.name][0][rows] == target)
        before = estimated(question, honest)
        for forgery in FORGERS if len(liars) else ("best", "random"):
            random = np.random.default_rng(0)
            if forgery == "lying":  # reports of devices that do have the target
                added = honest[random.choice(liars, forged)]
            else:
                added = (_best if forgery == "best" else _drawn)(question, target, forged, random)
            moved = estimated(question, np.concatenate([honest, added]))[target] - before[target]
            facts = {"measured": float(moved), "trials": forged}
            yield forgery_figure(question, target, forgery, forged / total, before, total, **facts)


def estimated(question: Question, reports: Column) -> Floats:
    """The shares of values, estimated from reports as they are published."""
    counts = question.mechanism.encoding.count(reports, np.zeros(len(reports), dtype=np.int64), 1)[0]
    return estimate(counts, len(reports), question.channel).value


def _best(question: Question, target: int, count: int, random: np.random.Generator) -> Column:
    """Every report supports the target; the rest looks like noise."""
    encoding = question.mechanism.encoding
    if isinstance(encoding, Hashed | FreshHash):
        chosen, wanted = random.integers(encoding.family, size=count), np.full(count, target)
        symbols = encoding.cells(wanted, chosen) if encoding.lifelong else encoding.hashed(chosen, wanted)
        return np.asarray(chosen * encoding.g + symbols, dtype=encoding.answer.dtype)
    if isinstance(encoding.answer, PackedBits):
        bits = np.zeros((count, question.k), dtype=np.uint8)
        if not encoding.lifelong:
            floor = question.channel.floor if isinstance(question.channel, SupportChannel) else 0.0
            bits[:] = random.random(bits.shape) < floor
        bits[:, target] = 1
        return encoding.answer.pack(bits)
    symbol = target
    if isinstance(question.channel, MatrixRound):
        symbol = int(question.channel.votes[:, target].argmax())
    return np.full(count, symbol, dtype=encoding.answer.dtype)


def _drawn(question: Question, target: int, count: int, random: np.random.Generator) -> Column:
    """Every possible report is equally likely."""
    encoding = question.mechanism.encoding
    if isinstance(encoding.answer, PackedBits):
        bits = (random.random((count, question.k)) < 0.5).astype(np.uint8)
        if encoding.lifelong:
            held = random.random((count, question.k)).argsort(axis=1)[:, : encoding.memo.count]
            mask = np.zeros_like(bits)
            np.put_along_axis(mask, held, 1, axis=1)
            bits &= mask
        return encoding.answer.pack(bits)
    return random.integers(encoding.answer.count, size=count).astype(encoding.answer.dtype)
