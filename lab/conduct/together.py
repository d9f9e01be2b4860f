"""Two things that must be independent among devices with the same value: exchanging one of them changes nothing.

Two answers of a device are, given its values: each attribute has memos and noise of its own. And so are an answer and
the value of another attribute. Devices with the same values are taken in pairs. If the second thing is exchanged
between both, what they have in common changes its sign and nothing else, so the sum has a bound (Hoeffding).
"""

import numpy as np

from lab.attacks.beside import chance_of_sum
from lab.attacks.observed import Observed
from lab.conduct.levels import smallest
from lab.conduct.rounds import symbols
from protocols.arrays import Floats, Places, Whole
from protocols.mechanisms import Direct, Flip, Hashed, Unary, noise_matrix
from protocols.question import Question

TINY = 1e-300  # in place of 0, where nothing was seen


def has_noise(question: Question) -> bool:
    """Whether the noise of an answer is seen when the value is known: as a shift, or as bits."""
    encoding = question.mechanism.encoding
    known = isinstance(encoding, Direct | Unary | Hashed)
    return known and not question.sets and question.attribute.grid is None


def noise_seen(question: Question, observed: Observed) -> Floats:
    """How often each shift, or each bit, was seen in the reports of each device, `[device, shift or bit]`.

    In the question's own order, because there noise is drawn.
    """
    seen = symbols(question, observed.answers[question.name]).astype(np.int64)
    encoding = question.mechanism.encoding
    if isinstance(encoding, Unary):
        return np.asarray(seen[..., question.order].mean(axis=0))
    values = observed.values[question.name].astype(np.int64)
    if isinstance(encoding, Hashed):
        cells = encoding.sent[np.asarray(observed.traits[question.name]), values]
        shifts = (seen - cells) % encoding.g
        return _shares(shifts, encoding.g)
    places = question.places_in_order
    return _shares((places[seen] - places[values]) % question.k, question.k)


def _shares(shifts: Whole, size: int) -> Floats:
    """How often each shift is among those of a device."""
    found = np.zeros((shifts.shape[1], size))
    for row in shifts:
        found[np.arange(len(row)), row] += 1 / len(shifts)
    return found


def coupling(one: Question, other: Question) -> Floats:
    """How much likelier two memos have each pair of shifts, or bits, if both are drawn with the same words."""
    ladders = []
    for question in (one, other):
        first = question.mechanism.first
        encoding = question.mechanism.encoding
        if isinstance(encoding, Unary) or not isinstance(first, Flip):
            return np.eye(_width(one), _width(other))
        row = noise_matrix(first, encoding.memo.count)[0]
        ladders.append(np.concatenate([[0.0], np.cumsum(row)]))
    ends, others = ladders
    upper = np.minimum(ends[1:, None], others[None, 1:])
    lower = np.maximum(ends[:-1, None], others[None, :-1])
    both = np.maximum(0.0, upper - lower)
    return np.asarray(both - np.outer(np.diff(ends), np.diff(others)))


def _width(question: Question) -> int:
    return int(question.mechanism.encoding.memo.count)


def pairs_within(strata: Whole, rng: np.random.Generator) -> tuple[Places, Places]:
    """Two columns: devices of the same stratum, in pairs; each device once, and those left over not at all.

    >>> one, two = pairs_within(np.array([7, 8, 7, 8, 8]), np.random.default_rng(1))
    >>> sorted(np.array([7, 8, 7, 8, 8])[one].tolist())
    [7, 8]
    """
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    sizes = np.unique(strata, return_counts=True)[1]
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    within = np.arange(len(strata)) - starts
    first = within % 2 == 0
    followed = within + 1 < np.repeat(sizes, sizes)
    places = np.flatnonzero(first & followed)
    return order[places], order[places + 1]


def known_chance(one: Floats, other: Floats, weights: Floats, strata: Whole, rng: np.random.Generator) -> float:
    """The chance of luck that devices have so much in common, by weights that are known beforehand.

    Of each pair it is counted how much more its devices have in common than if they exchanged `other`.
    """
    left, right = pairs_within(strata, rng)
    apart = one[left] - one[right]
    others = other[left] - other[right]
    return chance_of_sum(np.einsum("ni,ij,nj->n", apart, weights, others))


def any_chance(one: Floats, other: Floats, strata: Whole, rng: np.random.Generator) -> float:
    """The same of any column of `one` with any column of `other`, and of either sign: the oddest of all of them."""
    left, right = pairs_within(strata, rng)
    apart = one[left] - one[right]
    others = other[left] - other[right]
    totals = apart.T @ others
    squares = np.maximum((apart**2).T @ (others**2), TINY)
    return smallest(np.minimum(1.0, 2 * np.exp(-(totals**2) / squares / 2)))
