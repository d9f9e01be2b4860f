"""What linked reports reveal between any two histories of values (PROTOCOLS 3).

For few reports the figure is exact: all histories are gone through. For more it is a bound. Where the memo itself is
sent there is none: a memo that changed is a change of the value, with certainty.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from itertools import product
from math import inf, log

import numpy as np

from protocols.arrays.aliases import Floats, Whole
from protocols.arrays.columns import PackedBits
from protocols.mechanisms.mechanism import Mechanism
from protocols.mechanisms.rounds import Flip
from protocols.privacy.linked import element_loss, loss

History = tuple[int, ...]  # a cell for each report
ENUMERATED = 7  # reports up to which all histories are gone through: a week of days


def second_round_loss(mechanism: Mechanism) -> float:
    """The largest log-ratio of one report between any two memos: what a report loses whatever its history."""
    memo, second = mechanism.encoding.memo, mechanism.second
    if second is None:
        return inf
    if isinstance(second, Flip) and isinstance(memo, PackedBits):
        return memo.count * max(log(second.p / second.q), log((1 - second.q) / (1 - second.p)))
    return element_loss(replace(mechanism, first=second, second=None), 1)


def any_loss(mechanism: Mechanism, t: int) -> tuple[float, bool]:
    """The largest log-ratio between any two histories of t linked reports, and whether that is exact (or a bound).

    Given all memos, reports are independent, and each loses at most what the second round alone loses. So every report
    after those that were enumerated adds at most that much.

    >>> from protocols.mechanisms.catalogue import build
    >>> from protocols.mechanisms.mechanism import Budget
    >>> mechanism = build("l-grr", 3, Budget(1.0, 0.5))
    >>> [(round(figure, 3), exact) for figure, exact in (any_loss(mechanism, t) for t in (1, 2, 100))]
    [(0.5, True), (1.251, True), (130.628, False)]
    """
    if t == 1:
        return loss(mechanism, t), True
    if mechanism.second is None:
        return inf, True
    if t > ENUMERATED:
        first_reports, _ = any_loss(mechanism, ENUMERATED)
        return first_reports + (t - ENUMERATED) * second_round_loss(mechanism), False
    if isinstance(mechanism.second, Flip) and isinstance(mechanism.first, Flip):
        flips = mechanism.first, mechanism.second
        memo, everywhere = mechanism.encoding.memo, mechanism.encoding.states == mechanism.encoding.memo.count
        if not isinstance(memo, PackedBits):
            # Where a device cannot be in every cell (fewer values than hashes), going through all cells is a bound.
            return _enumerated_symbols(*flips, memo.count, t), everywhere
        if everywhere:
            return _enumerated_bits(*flips, memo.count, t), True
    return t * second_round_loss(mechanism), False


@lru_cache(maxsize=4096)
def _enumerated_symbols(first: Flip, second: Flip, symbols: int, t: int) -> float:
    """Answers are symbols. Given the answers, the likeliest and the least likely history are chosen independently.

    Which of t reports says what does not matter, only how often each symbol is named. A history gives each cell a set
    of the reports; its chance is a product over cells, so the best one is found cell by cell, for all sets at once.
    """
    sets = np.arange(1 << t)
    inside = sets[:, None] >> np.arange(t) & 1
    whole, part = np.nonzero((sets[:, None] & sets) == sets)
    widest = 0.0
    for sizes in _partitions(t):
        named = len(sizes)
        if named > symbols:
            continue
        said = inside @ (np.repeat(np.arange(named), sizes)[:, None] == np.arange(named))  # [set, symbol]
        count, unnamed = said.sum(axis=1), symbols - named
        if_memo = np.column_stack([second.p**said * second.q ** (count[:, None] - said), second.q**count])
        any_memo = first.q * (if_memo[:, :-1].sum(axis=1) + unnamed * if_memo[:, -1])
        chances = any_memo[:, None] + first.gain * if_memo  # [set, cell], the last for any cell that is not named
        cells = [*range(named), *([named] * min(unnamed, t))]
        ends = []
        for choose, nothing in ((np.maximum, 0.0), (np.minimum, inf)):
            reached = np.where(sets == 0, 1.0, nothing)
            for cell in cells:
                products = np.full(len(sets), nothing)
                choose.at(products, whole, reached[whole ^ part] * chances[part, cell])
                reached = products
            ends.append(reached[-1])
        widest = max(widest, log(ends[0] / ends[1]))
    return widest


@lru_cache(maxsize=4096)
def _enumerated_bits(first: Flip, second: Flip, bits: int, t: int) -> float:
    """Answers are bits, one for each cell. Given both histories, every bit's answers are chosen independently.

    A history divides the reports into blocks, one for each of its cells. Which cells they are matters only where both
    histories have one in common: its bit belongs to a block of either.
    """
    reports = np.arange(1 << t)[:, None] >> np.arange(t) & 1  # [set, report]; which reports say 1 is a set, too
    ones = reports @ reports.T  # [answers, block]
    zeros = reports.sum(axis=1) - ones
    if_set, if_not = second.p**ones * (1 - second.p) ** zeros, second.q**ones * (1 - second.q) ** zeros
    own, other = (np.log(share * if_set + (1 - share) * if_not) for share in (first.p, first.q))

    @cache
    def chances(division: History) -> Floats:
        """ln of the chance of all answers about a bit that is no block's cell, and about each block's own bit."""
        block = np.array(division)
        blocks = (np.arange(block.max() + 1)[:, None] == block) @ (1 << np.arange(t))
        alone = other[:, blocks].sum(axis=1)
        return np.concatenate([alone[None], alone + (own - other).T[blocks]])

    widest = 0.0
    for shared in _pairs_of_partitions(t):
        if max(shared.shape) <= bits:
            these, those = (np.repeat(place.ravel(), shared.ravel()).tolist() for place in np.indices(shared.shape))
            apart = (chances(tuple(these))[:, None] - chances(tuple(those))).max(axis=2)
            widest = max(widest, _named(np.asarray(apart), bits, widest))
    return widest


def _named(apart: Floats, bits: int, enough: float) -> float:
    """The largest sum over all bits: which blocks of both histories have a cell in common, and which have their own.

    `apart` is what a bit adds, [block of the one history, block of the other] that it belongs to, 0 if to none. What
    cannot be above `enough` is not looked for.
    """
    none, alone = float(apart[0, 0]), apart[1:, 0].tolist()
    blocks, others = apart.shape[0] - 1, apart.shape[1] - 1
    start = float(apart[0, 1:].sum()) + (bits - blocks - others) * none
    in_common = apart[1:, 1:] - apart[0, 1:] + none
    if start + float(np.maximum(in_common.max(axis=1), alone).sum()) <= enough:
        return enough
    reached: dict[int, float] = {0: start}  # by which of the other blocks have a cell in common with those before
    for own, gains in zip(alone, in_common.tolist(), strict=True):
        better: dict[int, float] = {}
        for taken, total in reached.items():
            free = [(taken | 1 << place, gain) for place, gain in enumerate(gains) if not taken >> place & 1]
            for after, gain in [(taken, own), *free]:
                better[after] = max(better.get(after, -inf), total + gain)
        reached = better
    return max(total for taken, total in reached.items() if blocks + others - taken.bit_count() <= bits)


def _partitions(t: int, most: int | None = None) -> Iterator[History]:
    """How t reports can be divided: the sizes of the parts, descending.

    >>> list(_partitions(4))
    [(4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1)]
    """
    if t == 0:
        yield ()
    for size in range(min(t, most or t), 0, -1):
        for rest in _partitions(t - size, size):
            yield (size, *rest)


@cache
def _pairs_of_partitions(t: int) -> list[Whole]:
    """Two divisions of t reports, up to their order: how many reports any two blocks share; each at least once.

    >>> [len(_pairs_of_partitions(t)) for t in (1, 2, 3)]
    [1, 4, 11]
    """
    found: dict[tuple[History, ...], tuple[History, ...]] = {}
    for sizes in _partitions(t):
        for columns in _divided(sizes, sizes):
            key = tuple(zip(*columns, strict=True))
            for _ in range(4):  # by rows and by columns: most of those that are alike become the same
                key = tuple(zip(*sorted(key), strict=True))
            found.setdefault(key, columns)
    return [np.array(columns).T for columns in found.values()]


@cache
def _divided(sizes: History, most: History) -> list[tuple[History, ...]]:
    """All ways to divide blocks among others: how many reports each takes from each block, descending."""
    ways: list[tuple[History, ...]] = [] if any(sizes) else [()]
    for taken in product(*(range(size, -1, -1) for size in sizes)):
        if any(taken) and taken <= most:
            left = tuple(size - some for size, some in zip(sizes, taken, strict=True))
            ways += ((taken, *rest) for rest in _divided(left, taken))
    return ways
