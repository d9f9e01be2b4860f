"""Finding a device's earlier report by its answers, carried out (docs/audit.md, section 7).

The score of a pair is ln P(y, y' | one device) / (P(y) P(y')), where the device's value did not change in between. It
is a table for symbols, and a sum over bits for bit vectors (the bits are taken as independent). On a grid of very many
cells it depends on how far two answers are apart, as if the grid had no border.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod

import numpy as np

from lab.attacks.likelihoods import NEVER, chunks, linked
from lab.attacks.observed import Observed
from lab.attacks.trials import Trials
from lab.audit.closed.guessing import SAME
from lab.audit.report import Figure
from protocols.arrays import Column, Floats, PackedBits
from protocols.mechanisms import Flip, FreshHash, PlanarRound, noise_matrix
from protocols.privacy import evidence, first_guess, memos_of, pairs_of, trait_values
from protocols.question import Question

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
    return partial(_of_bits, encoding.answer, _cells(ones, memos.noise))


def _of_symbols(table: Floats, hashed: bool, later: Column, earlier: Column) -> Floats:
    size = len(table)
    a, b = (np.asarray(column, dtype=np.int64) for column in (later, earlier))
    scores = table[np.ix_(a % size, b % size)]
    if hashed:  # a device keeps its hash
        scores = np.where((a // size)[:, None] == (b // size)[None, :], scores, np.log(NEVER))
    return np.asarray(scores)


def _of_bits(layout: PackedBits, cells: tuple[Floats, Floats, Floats], later: Column, earlier: Column) -> Floats:
    """From the scores of a bit that is set in none of two answers, in one of them, and in both."""
    none, one, both = cells
    ones, before = (layout.unpack(column).astype(np.float64) for column in (later, earlier))
    flips = one - none
    alone = (ones @ flips)[:, None] + (before @ flips)[None, :] + none.sum()
    return np.asarray((ones * (both - one - flips)) @ before.T + alone)


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


def _cells(ones: Floats, noise: Flip) -> tuple[Floats, Floats, Floats]:
    seen = ones * noise.gain + noise.q

    def score(count: int) -> Floats:
        up, down = (chance**count * (1 - chance) ** (2 - count) for chance in (noise.p, noise.q))
        return np.asarray(
            np.log(np.maximum(ones * up + (1 - ones) * down, NEVER)) - np.log(seen**count * (1 - seen) ** (2 - count))
        )

    return score(0), score(1), score(2)
