"""Full output distributions of small surveys, by brute force: every memo, every sequence of answers, every tuple.

Written apart from the code it checks: the only things taken from it are the rounds' own probabilities.
"""

from fractions import Fraction
from functools import reduce
from itertools import combinations, pairwise, permutations, product

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Floats
from protocols.mechanisms import Direct, Flip
from protocols.mechanisms.encodings import Unary
from protocols.mechanisms.fresh import FreshHash
from protocols.mechanisms.lifelong import Buckets, Hashed, Threshold
from protocols.mechanisms.rounds import MatrixRound
from protocols.question import Question
from protocols.randomness.sampling import SLOTS, Table
from protocols.scheme import Scheme


def exact(table: Table, kind: int = 0) -> list[Fraction]:
    """The probabilities of a table, from the integers that it draws with."""
    integers = table.integers[kind].tolist()
    owned, cuts = integers[: table.symbols], [0, *integers[table.symbols :], 1 << 64]
    left, pieces = 1 - Fraction(sum(owned), SLOTS), (high - low for low, high in pairwise(cuts))
    return [Fraction(own, SLOTS) + left * Fraction(piece, 1 << 64) for own, piece in zip(owned, pieces, strict=True)]


def answers(question: Question, t: int, longitudinal: bool) -> tuple[Floats, Floats | None]:
    """P(t answers | value) as [value, sequence], and P(t answers | fake); lifelong traits are part of the sequence."""
    values = range(len(per_trait(question)[0][1]))
    truth, lie = _over_time(question, [(value,) * t for value in values], None, longitudinal)
    return truth, None if lie is None else lie[0]


def survey_distribution(scheme: Scheme, t: int) -> Floats:
    """P(everything an observer who links t reports sees | tuple), as [value_1, ..., value_d, output]."""
    return _possible(scheme, [answers(question, t, scheme.survey.longitudinal) for question in scheme.questions])


def _possible(scheme: Scheme, tables: list[tuple[Floats, Floats | None]]) -> Floats:
    """All that may be seen, from each attribute's own table."""
    everything = combine(scheme, [truth for truth, _ in tables], [fake for _, fake in tables])
    possible = everything.reshape(-1, everything.shape[-1]).any(axis=0)  # a memo sent as it is cannot change
    return everything[..., possible]


def combine(scheme: Scheme, truths: list[Floats], fakes: list[Floats | None]) -> Floats:
    """One distribution over all attributes' outputs, from each attribute's own."""
    d, sizes = len(truths), [len(truth) for truth in truths]
    if scheme.survey.solution == "spl" or d == 1:
        return _outer(truths)
    if scheme.survey.solution == "smp":
        blocks = []
        for place, truth in enumerate(truths):
            shape = [1] * d + [truth.shape[1]]
            shape[place] = sizes[place]
            blocks.append(np.broadcast_to(truth.reshape(shape) / d, (*sizes, truth.shape[1])))
        return np.concatenate(blocks, axis=-1)
    everything = np.zeros((*sizes, int(np.prod([truth.shape[1] for truth in truths]))))
    for sampled in range(d):
        rows = []
        for place, (truth, fake) in enumerate(zip(truths, fakes, strict=True)):
            assert fake is not None
            rows.append(truth if place == sampled else np.broadcast_to(fake, truth.shape))
        everything += _outer(rows) / d
    return everything


def whole_loss(distribution: Floats) -> float:
    """The largest log-ratio between any two tuples."""
    flat = distribution.reshape(-1, distribution.shape[-1])
    return float(np.log(flat.max(axis=0) / flat.min(axis=0)).max())


def one_attribute_losses(distribution: Floats) -> list[float]:
    """For each attribute, the largest log-ratio between two tuples that differ only there."""
    places = range(distribution.ndim - 1)
    return [float(np.log(distribution.max(axis=place) / distribution.min(axis=place)).max()) for place in places]


def neighbours_loss(distribution: Floats) -> float:
    """The largest log-ratio between neighbouring values of a single attribute."""
    return float(np.abs(np.diff(np.log(distribution), axis=0)).max())


def histories(question: Question, length: int) -> list[tuple[Floats, Floats | None]]:
    """For each lifelong trait: P(memos of `length` distinct cells | history), a row per order, and P(memos | fake)."""
    tables = []
    for _, first, _, fake in per_trait(question):
        cells = np.unique(first, axis=0)  # values that share a cell share their memo
        orders = permutations(range(len(cells)), length)
        rows = [reduce(np.multiply.outer, cells[list(order)]).ravel() for order in orders]
        if rows:
            lie = None if fake is None else reduce(np.multiply.outer, [fake] * length).ravel()
            tables.append((np.array(rows), lie))
    return tables


def history_distribution(scheme: Scheme, t: int) -> Floats:
    """P(what an observer of t linked reports sees | history of each attribute), as [history_1, ..., history_d, output].

    A history has a value for each report. Values that share a cell share their memo, and a device at its cap holds.
    """
    survey = scheme.survey
    every = [list(product(range(question.k), repeat=t)) for question in scheme.questions]
    tables = zip(scheme.questions, every, strict=True)
    return _possible(scheme, [_over_time(q, values, survey.memo_cap, survey.longitudinal) for q, values in tables])


def _over_time(
    question: Question, values: list[tuple[int, ...]], cap: int | None, longitudinal: bool
) -> tuple[Floats, Floats | None]:
    """P(answers | history) as [history, sequence], for histories of some length; the same if the memos are fake."""
    truths, fakes = [], []
    for weight, first, second, fake in per_trait(question):
        if not longitudinal:
            truths.append([weight * reduce(np.multiply.outer, first[list(h)]).ravel() for h in values])
            lies = None if fake is None else _sequences(fake[None], len(values[0]))
            fakes.append(None if lies is None else [weight * lies[0]] * len(values))
            continue
        cells, cell_of = np.unique(first, axis=0, return_inverse=True)
        held = [_held([int(cell_of.ravel()[value]) for value in history], cap) for history in values]
        truths.append([weight * _answers_over(history, cells, second) for history in held])
        faked = None if fake is None else np.broadcast_to(fake, (len(cells), len(fake)))
        fakes.append(None if faked is None else [weight * _answers_over(history, faked, second) for history in held])
    told = [np.array(lie) for lie in fakes if lie is not None]
    return np.concatenate([np.array(truth) for truth in truths], axis=1), np.concatenate(told, axis=1) if told else None


def _held(history: list[int], cap: int | None) -> list[int]:
    """From creating its last permitted memo, a device goes on with that one."""
    for place in range(len(history)):
        if cap is not None and len(set(history[: place + 1])) == cap:
            return history[: place + 1] + [history[place]] * (len(history) - place - 1)
    return history


def _answers_over(history: list[int], memos: Floats, second: Floats) -> Floats:
    """P(a sequence of answers | cells), for each sequence: every cell has one memo, for all its reports."""
    distribution = np.ones([second.shape[1]] * len(history))
    for cell in set(history):
        places = [place for place, at in enumerate(history) if at == cell]
        shares = memos[cell] @ _sequences(second, len(places))
        shape = [second.shape[1] if place in places else 1 for place in range(len(history))]
        distribution = distribution * shares.reshape(shape)
    return distribution.ravel()


def per_trait(question: Question) -> list[tuple[float, Floats, Floats, Floats | None]]:
    """For each lifelong trait: its weight, round 1 [value, memo], round 2 [memo, answer], a fake's memo [memo]."""
    encoding, k = question.mechanism.encoding, question.k
    first, second = question.mechanism.first, question.mechanism.second
    if isinstance(encoding, Direct):
        fake = question.fake if question.faked else None
        if fake is not None and question.label == "grr-r":
            fake = fake @ _symbols(first, k)
        return [(1.0, _symbols(first, k), _symbols(second, k), fake)]
    if isinstance(encoding, Hashed):
        g = encoding.g
        return [(1 / encoding.family, _symbols(first, g)[row], _symbols(second, g), None) for row in encoding.sent]
    if isinstance(encoding, Threshold):  # as if answers showed the threshold itself
        numbers, places = np.arange(encoding.numbers), np.arange(encoding.numbers - 1)
        above = [(numbers > place).astype(int) for place in places]
        return [(1 / len(above), _symbols(first, 2)[row], _symbols(second, 2), None) for row in above]
    if isinstance(encoding, FreshHash):  # every report has a hash of its own, and nothing is memoised
        digits = np.array(list(product(range(encoding.g), repeat=encoding.digits)))
        chances = [_symbols(first, encoding.g)[digits[:k] @ row % encoding.g] / len(digits) for row in digits]
        return [(1.0, np.concatenate(chances, axis=1), np.eye(1), None)]
    if isinstance(encoding, Unary):
        vectors = _bits(first, np.eye(k, dtype=int))
        fake = None
        if question.faked:
            zero = _bits(first, np.zeros((1, k), dtype=int))[0]
            fake = zero if question.fake is None else question.fake @ vectors
        return [(1.0, vectors, _second_bits(second, k), fake)]
    assert isinstance(encoding, Buckets)
    held = list(combinations(range(k), encoding.d))
    one_hot = np.eye(k, dtype=int)
    return [(1 / len(held), _bits(first, one_hot[:, list(some)]), np.eye(2**encoding.d), None) for some in held]


def _symbols(noise: Flip | MatrixRound | None, k: int) -> Floats:
    if noise is None:
        return np.eye(k)
    if isinstance(noise, MatrixRound):
        return noise.matrix
    return np.array([[noise.p if i == j else noise.q for j in range(k)] for i in range(k)])


def _second_bits(noise: Flip | MatrixRound | None, k: int) -> Floats:
    every = np.array(list(product((0, 1), repeat=k)))
    return np.eye(2**k) if noise is None else _bits(noise, every)


def _bits(noise: Flip | MatrixRound | None, vectors: NDArray[np.int_]) -> Floats:
    """P(every bit vector | input vector), bit by bit."""
    assert isinstance(noise, Flip)
    every = list(product((0, 1), repeat=vectors.shape[1]))
    chance = {(1, 1): noise.p, (1, 0): 1 - noise.p, (0, 1): noise.q, (0, 0): 1 - noise.q}
    return np.array([[np.prod([chance[i, o] for i, o in zip(v, out, strict=True)]) for out in every] for v in vectors])


def _sequences(rows: Floats, t: int) -> Floats:
    """t independent answers from each row, as one distribution."""
    return np.array([reduce(np.multiply.outer, [row] * t).ravel() for row in rows])


def _outer(rows: list[Floats]) -> Floats:
    """Independent attributes side by side: [v1, .., vd, output]."""
    result = rows[0]
    for row in rows[1:]:
        result = np.einsum("...i,vj->...vij", result, row).reshape(*result.shape[:-1], len(row), -1)
    return result
