"""Finding a device's earlier report by its answers, in closed form and carried out (docs/audit.md, section 7).

The score of a pair is a table for symbols, and a sum over bits for bit vectors (the bits are taken as independent). On
a grid of very many cells it depends on how far two answers are apart, as if the grid had no border.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import comb, inf, log, prod

import numpy as np

from lab.attacks.accuracy import SAME, asked
from lab.attacks.likelihoods import NEVER, chunks, linked
from lab.attacks.observed import Observed
from lab.attacks.report import Figure, Trials, plain
from protocols.arrays import Column, Floats, PackedBits
from protocols.mechanisms import (
    Buckets,
    Encoding,
    Flip,
    FreshHash,
    Hashed,
    MatrixRound,
    PlanarRound,
    Threshold,
    Unary,
    noise_matrix,
)
from protocols.privacy import evidence, first_guess, memo_trackability, memos_of, pairs_of, trait_values
from protocols.question import Question
from protocols.scheme import Scheme

FEW_VALUES = 4096
FEW_CELLS = 1024  # of a grid whose channel is gone through
TARGETS = 2000  # reports whose earlier one is looked for
CANDIDATES = 20_000  # among at most so many devices

PairScores = Callable[[Column, Column], Floats]
"""Of later answers and earlier ones to a question: `[later, earlier]`."""


def link_figures(observed: Observed, alpha: float) -> Iterator[Figure]:
    """For each kind of report: how often the best guess of the device's report before is right."""
    scheme, memoised = observed.scheme, observed.scheme.survey.longitudinal
    if observed.periods <= scheme.survey.one_in:
        return
    for report in evidence(scheme.questions, scheme.discloses, memoised):
        trials, candidates = link_trials(observed, report.questions)
        if trials.count:
            among = max(1, candidates // prod(map(trait_values, report.questions)))
            yield trials.figure(
                alpha, attack="link",
                target=report.questions[0].name if len(report.questions) == 1 else "a whole report",
                knows=f"answers and lifelong traits, among {candidates:,} devices", reports=2, luck=1 / among,
                best=first_guess(report.questions, among, memoised), exact=False,
            )  # fmt: skip


def link_trials(observed: Observed, questions: Sequence[Question]) -> tuple[Trials, int]:
    """How often a device's report of the first period is found by its next answer, and the number of candidates.

    Targets have answered in both periods, whether their value has changed or not; all reports of the first period are
    candidates, up to `CANDIDATES` of them.
    """
    later = observed.scheme.survey.one_in
    candidates = observed.answering_first(questions[0].name)[:CANDIDATES]
    wanted = np.flatnonzero(observed.answered[later][candidates])[:TARGETS]
    scores = [pair_scores(question, observed.scheme.survey.longitudinal) for question in questions]
    total = Trials()
    for own in chunks(wanted, len(candidates)):
        found = np.zeros((len(own), len(candidates)))
        for part, question in zip(scores, questions, strict=True):
            answers = observed.answers[question.name]
            found += part(answers[later][candidates[own]], answers[0][candidates])
        mine = found[np.arange(len(own)), own][:, None]
        better, equal = (found > mine + SAME).sum(axis=1), (abs(found - mine) <= SAME).sum(axis=1)
        total += Trials(float(np.where(better == 0, 1 / equal, 0.0).sum()), len(own))
    return total, len(candidates)


def pair_scores(question: Question, memoised: bool) -> PairScores:
    """The scores of pairs of answers to a question, with values spread evenly or like the survey's prior."""
    encoding, plane = question.mechanism.encoding, question.mechanism.first
    if isinstance(encoding, FreshHash):
        return partial(_of_fresh_hashes, question)
    if isinstance(plane, PlanarRound) and question.k > FEW_CELLS:
        scores = np.maximum(pairs_of(question, memoised)[0].score, np.log(NEVER))
        return partial(_of_cells, scores.reshape(2 * plane.rows - 1, 2 * plane.columns - 1))
    memos = memos_of(question, memoised)
    if not memos.bits:
        noise = noise_matrix(memos.noise, len(memos.shares))
        both, alone = noise.T @ (memos.shares[:, None] * noise), memos.shares @ noise
        table = np.log(np.maximum(both, NEVER)) - np.log(np.outer(alone, alone))
        return partial(_of_symbols, np.asarray(table), encoding.lifelong)
    assert isinstance(memos.noise, Flip) and isinstance(encoding.answer, PackedBits)
    ones = memos.shares
    if encoding.lifelong:  # an answer shows a bit where it is held and set
        ones = np.full(question.k, ones[0] * encoding.memo.count / question.k)
    return partial(_of_bits, encoding.answer, ones, memos.noise)


def _of_symbols(table: Floats, hashed: bool, later: Column, earlier: Column) -> Floats:
    size = len(table)
    a, b = (np.asarray(column, dtype=np.int64) for column in (later, earlier))
    scores = table[np.ix_(a % size, b % size)]
    if hashed:  # a device keeps its hash
        scores = np.where((a // size)[:, None] == (b // size)[None, :], scores, np.log(NEVER))
    return np.asarray(scores)


def _of_bits(layout: PackedBits, ones: Floats, noise: Flip, later: Column, earlier: Column) -> Floats:
    """From the scores of a bit that is set in none of two answers, in one of them, and in both.

    `ones` is how often each bit of a memo is set.
    """
    seen, scores = ones * noise.gain + noise.q, []
    for count in range(3):
        up, down = (chance**count * (1 - chance) ** (2 - count) for chance in (noise.p, noise.q))
        together = np.log(np.maximum(ones * up + (1 - ones) * down, NEVER))
        scores.append(together - np.log(seen**count * (1 - seen) ** (2 - count)))
    none, one, both = scores
    bits, before = (layout.unpack(column).astype(np.float64) for column in (later, earlier))
    flips = one - none
    alone = (bits @ flips)[:, None] + (before @ flips)[None, :] + none.sum()
    return np.asarray((bits * (both - one - flips)) @ before.T + alone)


def _of_cells(scores: Floats, later: Column, earlier: Column) -> Floats:
    """On a large grid, from scores by how many rows and columns one answer is from the other."""
    rows, columns = (size // 2 for size in scores.shape)  # the largest distances
    (up, across), (up_before, across_before) = (
        np.divmod(column.astype(np.int64), columns + 1) for column in (later, earlier)
    )
    apart = up[:, None] - up_before[None, :] + rows, across[:, None] - across_before[None, :] + columns
    return np.asarray(scores[apart])


def _of_fresh_hashes(question: Question, later: Column, earlier: Column) -> Floats:
    """Answers to few values are compared value by value; of many, two answers have too little in common."""
    if question.k > FEW_VALUES:
        return np.zeros((len(later), len(earlier)))
    one, other = (np.exp(linked(question, [column], None, memoised=False).values) for column in (later, earlier))
    marginal = np.outer(one.mean(axis=1), other.mean(axis=1))
    return np.asarray(np.log(one @ other.T / question.k) - np.log(marginal))


def links(scheme: Scheme, devices: int) -> Iterator[Figure]:
    """The figures of recognising a device among so many, and of what its memo shows."""
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
