"""All figures of a survey that have a closed form (docs/audit.md). Takes well under a second."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import comb, exp, inf, log
from typing import Any

import numpy as np

from lab.audit.closed.forging import MOST_CELLS, Forgery, forgery_gain, moved, moved_places
from lab.audit.closed.guessing import attribute_inference, best_guess, guess, tuple_guess
from lab.audit.closed.places import averaged, blind
from lab.audit.report import Attack, Attacker, Figure, plain
from protocols.arrays import Floats, PackedBits
from protocols.mechanisms import Buckets, Encoding, Flip, Hashed, MatrixRound, Threshold, Unary
from protocols.privacy import (
    Loss,
    attribute_guess,
    blind_guess,
    central_loss,
    evidence,
    memo_trackability,
)
from protocols.question import Question
from protocols.scheme import Scheme

Priors = Mapping[str, Floats]

SEEN = (1, 10, inf)
FORGED = 0.01  # the share of forged reports that figures are for
FORGERS: dict[Forgery, str] = {
    "best": "supports the target as much as a report can",
    "random": "draws its reports evenly",
    "lying": "follows the protocol with the target as its value",
}
WHOLE = "the whole tuple"


def computed(
    scheme: Scheme, devices: int, only: Collection[Attack], attacker: Attacker = "best", priors: Priors | None = None
) -> list[Figure]:
    """Every figure of the attacks in `only` that has a closed form, among `devices`."""
    known = priors or {}
    parts: dict[Attack, Iterator[Figure]] = {
        "guess": _guesses(scheme, known),
        "place": _places(scheme),
        "which": _which(scheme, known),
        "link": _links(scheme, devices),
        "epsilon": _losses(scheme, attacker),
        "read": _readings(scheme, devices),
        "forge": _forgeries(scheme, known, devices),
    }
    return [figure for attack, figures in parts.items() if attack in only for figure in figures]


def _places(scheme: Scheme) -> Iterator[Figure]:
    """The averaging attack: the smaller the distance, the better for the attacker."""
    for question in (question for question in scheme.questions if question.attribute.placed):
        for t in (1, 30, 365, inf):
            best, luck = averaged(question, t, scheme.survey.longitudinal), blind(question)
            knows, facts = "averages linked reports of one place", {"exact": False, "limited": False}
            yield plain("place", question.name, knows, t, best, luck=luck, histogram=None, **facts)


def asked(scheme: Scheme) -> list[Question]:
    """The questions whose values are guessed one by one: not those about places."""
    return [question for question in scheme.questions if not question.attribute.placed]


def of_values(question: Question) -> bool:
    """Whether a device has one of the values asked: not a set, nor a number that answers compare with thresholds."""
    return not question.sets and not question.numeric


def guessed(scheme: Scheme) -> list[tuple[Question, ...]]:
    """What is guessed together: each question alone; of several that are all about values, whole tuples, too."""
    whole = len(scheme.questions) > 1 and all(not q.attribute.placed and of_values(q) for q in scheme.questions)
    return [*((question,) for question in asked(scheme)), *([scheme.questions] if whole else [])]


def guess_terms(targets: Sequence[Question], priors: Priors, t: float) -> dict[str, Any]:
    """What a figure says of guesses of these questions, by somebody who knows these shares and sees t reports."""
    return {
        "attack": "guess",
        "target": WHOLE if len(targets) > 1 else targets[0].name,
        "knows": ("the shares of all values" if any(q.name in priors for q in targets) else "even shares")
        + ("; the number" if targets[0].numeric else "; a value of the set" if targets[0].sets else ""),
        "reports": t,
        "luck": float(np.prod([blind_guess(question) for question in targets])),
    }


def _guesses(scheme: Scheme, priors: Priors) -> Iterator[Figure]:
    for targets in guessed(scheme):
        known, whole = [priors.get(question.name) for question in targets], len(targets) > 1
        if whole and priors and targets[0].faked:
            continue  # that has no closed form
        commonest = [blind_guess(q) if p is None else p.max() for q, p in zip(targets, known, strict=True)]
        for t in SEEN:
            if whole:
                best, exact = tuple_guess(scheme, t, priors), True
            else:
                best, exact = best_guess(scheme, targets[0], t, known[0])
            if best is not None:
                terms = guess_terms(targets, priors, t)
                yield plain(**terms, histogram=float(np.prod(commonest)), best=best, exact=exact)


def _which(scheme: Scheme, priors: Priors) -> Iterator[Figure]:
    questions = scheme.questions
    if not questions[0].faked:
        return

    def figure(knows: str, t: float, best: float, exact: bool = True) -> Figure:
        if scheme.takes_turns:
            knows = f"{knows}; a report that answers"
        return plain("which", "the true attribute", knows, t, best, luck=1 / len(questions), exact=exact)

    if all(question.name in priors for question in questions):
        for t in (1, inf) if scheme.survey.longitudinal else (1,):
            yield figure("the shares of all values", t, *attribute_inference(questions, priors, t))
        return
    yield figure("values are spread like fakes", 1, attribute_guess(questions, same=False))
    if all(question.fake is None or np.ptp(question.fake) == 0 for question in questions):
        yield figure("all devices have the same values (worst case)", 1, attribute_guess(questions, same=True))


def _links(scheme: Scheme, devices: int) -> Iterator[Figure]:
    for report in evidence(scheme.questions, scheme.discloses, scheme.survey.longitudinal, scheme.survey.one_in):
        one = len(report.questions) == 1
        target = report.questions[0].name if one else "a whole report"
        knows, luck = "answers and lifelong traits; values stay", 1 / report.alike(devices)
        yield plain("link", target, knows, 2, report.first_guess(devices), luck=luck, exact=False)
        knows = "what two reports of a device have in common"
        yield plain("link", target, knows, 2, report.bits, unit="bits", exact=False)
    if scheme.survey.longitudinal:
        yield from _memos(scheme)


def _memos(scheme: Scheme) -> Iterator[Figure]:
    for question in asked(scheme):
        name, tracked, shows = question.name, memo_trackability(question.mechanism, 10), change_shows(question)
        yield plain("link", name, "all reports: what the memo adds to the value", inf, memo_bits(question), unit="bits")
        if tracked is not None:
            knows = "one device or two with the same value, ten reports each"
            yield plain("link", name, knows, 20, tracked / log(2), unit="bits")
        if shows is not None:
            yield plain("link", name, "a change of value changes the memo", inf, shows, limited=False)


def memo_bits(question: Question) -> float:
    """The entropy of a memo given the value, in bits: what unlimited reports can show of a device beyond its value."""
    from scipy.special import entr  # takes a while to import

    first, memo = question.mechanism.first, question.mechanism.encoding.memo
    if isinstance(first, MatrixRound):
        return float(entr(first.matrix).sum(axis=1).mean() / log(2))
    chances = np.array([first.p, *[first.q] * (memo.count - 1)])
    unset = entr(1 - chances).sum() if isinstance(memo, PackedBits) else 0.0
    return float((entr(chances).sum() + unset) / log(2))


def change_shows(question: Question) -> float | None:
    """The chance that another value has another memo, so that linked reports can show a change. None if ordered."""
    encoding, first = question.mechanism.encoding, question.mechanism.first
    if isinstance(first, MatrixRound):
        return None
    moved = 2 / (question.several + 1) if question.sets else 1.0  # a set with one other value, by its element
    return moved * _memos_differ(encoding, first)


def _memos_differ(encoding: Encoding, first: Flip) -> float:
    """The chance that the memos of two values of a device differ."""
    own, other = first.p * first.q + (1 - first.p) * (1 - first.q), first.q**2 + (1 - first.q) ** 2  # bits are alike
    if isinstance(encoding, Unary):
        return 1 - own**2 * other ** (encoding.k - 2)
    if isinstance(encoding, Buckets):
        k, d, ways = encoding.k, encoding.d, comb(encoding.k, encoding.d)
        neither, both = comb(k - 2, d) / ways, comb(k - 2, d - 2) / ways if d > 1 else 0.0
        alike = both * own**2 * other ** max(0, d - 2) + (1 - both - neither) * own * other ** (d - 1)
        return 1 - neither - alike
    apart = 1 - 1 / encoding.g if isinstance(encoding, Hashed) else 1.0
    if isinstance(encoding, Threshold):  # between two numbers as often as numbers that are drawn evenly are apart
        apart = (encoding.numbers + 1) / (3 * (encoding.numbers - 1))
    symbols = encoding.memo.count
    return apart * (1 - (2 * first.p * first.q + (symbols - 2) * first.q**2))


def _losses(scheme: Scheme, attacker: Attacker) -> Iterator[Figure]:
    promise = scheme.guarantees

    def both(knows: str, t: float, loss: Loss) -> Iterator[Figure]:
        yield plain("epsilon", "whole tuples", knows, t, loss.whole, exact=loss.exact)
        if len(scheme.questions) > 1:
            yield plain("epsilon", "one attribute", knows, t, loss.attribute, exact=loss.exact)

    for t in SEEN:
        yield from both("values never change", t, promise.constant(t))
    yield from both("any two histories", 10, promise.any(10))
    if attacker == "published":
        for question in filter(of_values, asked(scheme)):
            accuracy = guess(question, 1, scheme.survey.longitudinal)
            if accuracy is not None and accuracy < 1:
                reached = log(accuracy * (question.k - 1) / (1 - accuracy)) if question.k > 1 else 0.0
                loss = promise.per_attribute(1)[scheme.survey.index(question.name)]
                knows = "guesses of the value (published attacker)"
                yield plain("epsilon", question.name, knows, 1, loss, measured=max(0.0, reached))


def _readings(scheme: Scheme, devices: int) -> Iterator[Figure]:
    """A reader of tables who knows everybody else guesses which of two values a device has."""
    promise = scheme.survey.central
    for question, local in zip(scheme.questions, scheme.guarantees.per_attribute(1), strict=True):
        if question.attribute.placed:
            continue
        loss, delta, knows = local, 0.0, "tables by gap, or live: a single report"
        if promise is not None:
            answers, delta = answering(scheme, question, devices), promise.delta
            found = central_loss(scheme.guarantees, {question.name: [answers]}, delta=delta)
            loss, knows = found.by_attribute.get(question.name, local), f"tables of {answers:,} answers"
        chance = 1 / (1 + exp(-loss)) + delta
        yield plain("read", question.name, f"everybody else's memos; {knows}", 1, chance, luck=0.5, exact=False)


def answering(scheme: Scheme, question: Question, devices: int) -> int:
    """How many of these devices answer a question in a period."""
    return max(1, round(devices * float(question.drawn) / scheme.survey.one_in))


def _forgeries(scheme: Scheme, priors: Priors, devices: int) -> Iterator[Figure]:
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
