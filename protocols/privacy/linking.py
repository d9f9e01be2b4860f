"""How well two reports of one device are recognised by their answers alone (PROTOCOLS 9).

Two reports y and y' carry ln P(y, y' | one device) / (P(y) P(y')): their mean over one device's reports, in bits, is
the information of a pair. Bits of an answer are taken as independent of one another: a value sets one of them, which
changes little. Values are taken to stay the same, and to be spread evenly or like the survey's prior.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.arrays.columns import PackedBits
from protocols.mechanisms.places.displacement import PlanarRound
from protocols.mechanisms.rounds import Flip, MatrixRound, Round
from protocols.question import Question

GRID = 1 << 17  # points on which the sum of many scores is computed
NARROW = 1.0  # the least width of that grid: the same score may be the only one that is possible
DEVIATIONS = 40  # beyond which sums are not told apart: what is further away never decides a guess
KEPT = Flip(1.0, 0.0)
FEW_CELLS = 400  # of a grid, all pairs of which are gone through


@dataclass(frozen=True)
class Pairs:
    """The cells a pair of reports can fall into, for some independent parts of an answer that are alike.

    `together` is the chance of each cell for two reports of one device, `apart` for reports of two devices; `count`
    says how many such parts an answer has. `symbols`: cells are all pairs of this number of symbols, [later, earlier].
    """

    together: Floats
    apart: Floats
    count: int = 1
    symbols: int = 0

    @property
    def score(self) -> Floats:
        """ln of together / apart; 0 where neither happens."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(
                self.together > 0, np.log(self.together) - np.log(self.apart), np.where(self.apart > 0, -np.inf, 0.0)
            )

    @property
    def information(self) -> float:
        """Bits."""
        seen = self.together > 0
        return self.count * float(self.together[seen] @ self.score[seen]) / log(2)


def pair_information(question: Question, memoised: bool = True) -> float:
    """The bits that a pair of reports of one device carries about being one device's, for one attribute."""
    return sum(pairs.information for pairs in pairs_of(question, memoised))


def pairs_of(question: Question, memoised: bool = True) -> list[Pairs]:
    """What a pair of answers to a question consists of."""
    if (fresh := question.mechanism.encoding.fresh_pairs(question.mechanism.first)) is not None:
        together, apart = fresh
        return [Pairs(together.ravel(), apart.ravel(), symbols=len(together) if together.ndim > 1 else 0)]
    if isinstance(question.mechanism.first, PlanarRound) and question.k > FEW_CELLS:
        return [_of_places(question, memoised)]
    memos = memos_of(question, memoised)
    if not isinstance(memos.noise, Flip):
        return [_of_matrix(memos.shares, memos.noise.matrix)]
    found = list(_of_bits(memos.shares, memos.noise)) if memos.bits else [_of_symbols(memos.shares, memos.noise)]
    return found if memoised or not question.sets else [_drawn_anew(pairs, question) for pairs in found]


def _drawn_anew(pairs: Pairs, question: Question) -> Pairs:
    """Where elements of sets are drawn in every period: the same one in one of L, otherwise any other one."""
    others = (question.k * pairs.apart - pairs.together) / (question.k - 1)
    return replace(pairs, together=pairs.together / question.several + (1 - 1 / question.several) * others)


@dataclass(frozen=True, eq=False)
class Memos:
    """What two answers of a device have in common: how memos are spread, and the noise that each answer adds.

    `shares` is how often each symbol is the memo or, of bits, how often each bit of a memo is set.
    """

    shares: Floats
    noise: Round
    bits: bool = False


def memos_of(question: Question, memoised: bool = True) -> Memos:
    """The memos of a question. Where nothing is memoised, the value itself links answers."""
    if not memoised:
        question = of_the_value(question)
    first, second = question.mechanism.first, question.mechanism.second
    if isinstance(first, MatrixRound):
        assert second is None or isinstance(second, MatrixRound)
        return Memos(first.matrix.mean(axis=0), second or MatrixRound(np.eye(question.k)))
    assert isinstance(second, Flip | None)
    bits = isinstance(question.mechanism.encoding.memo, PackedBits)
    return Memos(_memo_shares(question), second or KEPT, bits)


def of_the_value(question: Question) -> Question:
    """The same noise as round 2 over the value, for devices whose attribute is true (fakes are new in every report)."""
    noise = question.mechanism.first
    kept = MatrixRound(np.eye(question.k)) if isinstance(noise, MatrixRound) else KEPT
    return replace(question, mechanism=replace(question.mechanism, first=kept, second=noise), share=1.0, fake=None)


def _memo_shares(question: Question) -> Floats:
    """How often each symbol is the memo, or each of its bits is set: of the truth, and of fakes where there are any."""
    first, memo = question.mechanism.first, question.mechanism.encoding.memo
    assert isinstance(first, Flip)
    shares = _values(question, memo.count) * first.gain + first.q
    if not question.faked:
        return shares
    fakes = question.fake_memo
    if isinstance(memo, PackedBits):
        fakes = (np.zeros(memo.count) if question.fake is None else question.fake) * first.gain + first.q
    assert fakes is not None, "a symbol has no zero vector"
    return np.asarray(question.share * shares + (1 - question.share) * fakes)


def _of_symbols(memos: Floats, second: Flip) -> Pairs:
    """Pairs of symbols, cells with the same chance gathered: equal symbols by share, different ones by both shares."""
    shares, counts = np.unique(memos.round(15), return_counts=True)
    marginal = second.q + second.gain * shares
    both = second.q**2 + second.q * second.gain * (shares[:, None] + shares[None, :])
    pairs = counts[:, None] * counts[None, :] - np.diag(counts)
    equal = np.diag(both) + second.gain**2 * shares
    together = np.concatenate([(both * pairs).ravel(), equal * counts])
    apart = np.concatenate([(np.outer(marginal, marginal) * pairs).ravel(), marginal**2 * counts])
    return Pairs(together, apart)


def _of_bits(ones: Floats, second: Flip) -> Iterator[Pairs]:
    """Pairs of bits: both set, one of them, none; bits with the same share of ones gathered."""
    for share, count in zip(*np.unique(ones.round(15), return_counts=True), strict=True):
        cells = [(second.p**a * (1 - second.p) ** (2 - a), second.q**a * (1 - second.q) ** (2 - a)) for a in (2, 1, 0)]
        times = np.array([1, 2, 1])
        together = times * np.array([share * up + (1 - share) * down for up, down in cells])
        one = share * second.p + (1 - share) * second.q
        apart = times * np.array([one**2, one * (1 - one), (1 - one) ** 2])
        yield Pairs(together, apart, int(count))


def _of_matrix(memos: Floats, second: Floats) -> Pairs:
    """Pairs of symbols of an ordered domain, or of cells."""
    both, marginal = second.T @ (memos[:, None] * second), memos @ second
    return Pairs(both.ravel(), np.outer(marginal, marginal).ravel(), symbols=len(marginal))


def _of_places(question: Question, memoised: bool) -> Pairs:
    """Pairs of cells, by how far they are apart in columns and rows: both come from one memo, or from two anywhere.

    Of grids with many cells: memos are taken to be spread evenly, and the border of the grid not to matter.
    """
    noise = question.mechanism.second if memoised else question.mechanism.first
    plane = question.mechanism.first
    assert isinstance(plane, PlanarRound) and isinstance(noise, PlanarRound | None)
    up, across = (
        np.concatenate([np.arange(1, size), np.arange(size, 0, -1)]) / size**2 for size in (plane.rows, plane.columns)
    )
    apart = np.outer(up, across)
    if noise is None:
        together = np.zeros_like(apart)
        together[plane.rows - 1, plane.columns - 1] = 1.0
    else:
        law = noise.chances
        size = 2 * law.shape[0] - 1, 2 * law.shape[1] - 1
        twice = np.fft.irfft2(np.fft.rfft2(law, size) ** 2, size)  # the law is symmetric: its own reverse
        rows, columns = plane.rows - 1, plane.columns - 1
        together = np.maximum(twice[rows : 3 * rows + 1, columns : 3 * columns + 1], 0) + 1e-18
        together = together / together.sum()
    return Pairs(together.ravel(), apart.ravel())


def _values(question: Question, size: int) -> Floats:
    """How true values are spread over symbols or bits: like the prior, or evenly.

    A hash spreads values over its symbols; of the buckets that a device holds, each is its value's in one of k cases.
    """
    if question.attribute.prior is None or size != question.k:
        hashed = not isinstance(question.mechanism.encoding.memo, PackedBits)
        return np.full(size, 1 / (size if hashed else question.k))
    return np.array([question.attribute.prior[value] for value in question.attribute.values])


def first_guess(questions: Sequence[Question], crowd: int, memoised: bool = True) -> float:
    """The chance that, among `crowd` devices, the best guess of which earlier report belongs to a device is right.

    A report answers all `questions`. Of single symbols each later report is gone through. Scores of independent parts
    add up, and the sum of several is computed on a grid. Ties are shared.
    """
    parts = [part for question in questions for part in pairs_of(question, memoised)]
    low, high = _window(parts)
    always = all(np.isfinite(part.score).all() for part in parts)  # whether every pair is possible
    if high - low < 1e-12 and always:
        return 1 / crowd
    if len(parts) == 1 and parts[0].count == 1:  # nothing to add up
        shape = max(1, parts[0].symbols), -1
        rows = zip(*(of.reshape(shape) for of in (parts[0].score, parts[0].together, parts[0].apart)), strict=True)
        found = sum(_right(*_by_score(score, same, other), crowd) for score, same, other in rows)
    else:
        step = max(high - low, NARROW) / (GRID - 8)
        same = _sum_of_scores([(part, part.together) for part in parts], low, step)
        other = _sum_of_scores([(part, part.apart) for part in parts], low, step)
        found = _right(same, other, crowd)
    return float(np.clip(found, 1 / crowd, 1.0))


def _by_score(score: Floats, same: Floats, other: Floats) -> tuple[Floats, Floats]:
    """The chances of each score, ascending, for one later report: with the device's own, and with another's."""
    _, place = np.unique(score.round(12), return_inverse=True)
    own, others = (np.bincount(place, weights=of).astype(np.float64) for of in (same, other / other.sum()))
    return own, others


def _right(same: Floats, other: Floats, crowd: int) -> float:
    """The chance that the own report has the best score among `crowd`; ties are shared."""
    below = np.concatenate([[0.0], np.cumsum(other)]).clip(0, 1)
    lost = max(0.0, 1 - below[-1])  # an impossible pair: never better than a possible one
    better = (below[1:] + lost).clip(0, 1) ** crowd - (below[:-1] + lost).clip(0, 1) ** crowd
    ties = np.where(
        other > 1e-15, better / np.maximum(crowd * other, 1e-300), (below[:-1] + lost).clip(0, 1) ** (crowd - 1)
    )
    return float(same @ ties)


def _window(parts: list[Pairs]) -> tuple[float, float]:
    """The lowest and the highest sum of scores that matter: all that are possible, within many standard deviations."""
    finite = [(part, np.isfinite(part.score)) for part in parts]
    low = sum(part.count * float(part.score[possible].min()) for part, possible in finite)
    high = sum(part.count * float(part.score[possible].max()) for part, possible in finite)
    ends = []
    for chances in ("together", "apart"):
        mean = square = 0.0
        for part, possible in finite:
            weights, scores = getattr(part, chances)[possible], part.score[possible]
            middle = float(weights @ scores / weights.sum())
            mean += part.count * middle
            square += part.count * float(weights @ (scores - middle) ** 2 / weights.sum())
        ends += [mean - DEVIATIONS * square**0.5, mean + DEVIATIONS * square**0.5]
    return max(low, min(ends)), min(high, max(ends))


def _sum_of_scores(parts: list[tuple[Pairs, Floats]], low: float, step: float) -> Floats:
    """The distribution of the sum of all scores, on a grid that ascends from `low`.

    A score between two points of the grid is divided between them, which keeps its mean.
    """
    total = np.ones(GRID // 2 + 1, dtype=np.complex128)
    for part, chances in parts:
        possible = np.isfinite(part.score)
        places = part.score[possible] / step
        floors = np.floor(places).astype(np.int64)
        above = places - floors
        single = np.bincount(floors % GRID, weights=chances[possible] * (1 - above), minlength=GRID)
        single += np.bincount((floors + 1) % GRID, weights=chances[possible] * above, minlength=GRID)
        total = total * np.fft.rfft(single) ** part.count
    spread = np.fft.irfft(total, GRID)  # sums are modulo GRID points, of which the window is a part
    return np.maximum(np.roll(spread, -(int(np.floor(low / step)) - 2) % GRID), 0.0)
