"""One round of noise, and how two of them chain (PROTOCOLS 1 to 3).

A `Flip` is a pair (p, q): p = P(output supports i | input is i), q = P(output supports i | input is not i). For a
direct encoding p + (k-1) q = 1 (generalised randomised response); for a unary one each bit is flipped on its own.
Either way two rounds chain into one by the same formula,

    p = p1 (p2 - q2) + q2        q = q1 (p2 - q2) + q2

because an input that is not i becomes i with probability q2, whatever it is. A `MatrixRound` is a full channel matrix
over an ordered domain; two chain by multiplication.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf, log, log1p

import numpy as np

from protocols.arrays.aliases import Column, Floats, Whole, Words
from protocols.mechanisms.portable import exp, expm1
from protocols.randomness.keystream import Draws
from protocols.randomness.sampling import invert, row_cuts

IMPOSSIBLE = -100.0  # ln of a probability that 64 random bits never draw; taken as 0, which avoids denormal numbers


@dataclass(frozen=True)
class Flip:
    """Support the input's own place with probability p, any other with q.

    >>> Flip(0.75, 0.25).then(Flip(0.75, 0.25))
    Flip(p=0.625, q=0.375)
    """

    p: float
    q: float

    @property
    def gain(self) -> float:
        return self.p - self.q

    @property
    def numbers(self) -> dict[str, float]:
        """What its tables follow from."""
        return {"p": self.p, "q": self.q}

    def then(self, other: "Flip") -> "Flip":
        return Flip(self.p * other.gain + other.q, self.q * other.gain + other.q)


class MatrixRound:
    """A channel matrix: row = input, column = output, rows sum to 1.

    Of all rounds as one it is the channel of ordered values: a report supports the value it names.
    """

    exclusive = True

    def __init__(self, matrix: Floats, logs: Floats | None = None) -> None:
        self.matrix = matrix
        if logs is not None:
            self.logs = logs

    @cached_property
    def logs(self) -> Floats:
        """Logarithms of the matrix, also where a probability is so small that the matrix has 0, if they were given."""
        with np.errstate(divide="ignore"):
            return np.log(self.matrix)

    @cached_property
    def table(self) -> Words:
        """The integers that it draws with: one row, or one for each input."""
        return row_cuts(self.matrix)

    def sample(self, inputs: Whole, draws: Draws) -> Column:
        """The output of each input."""
        return invert(self.table, inputs, draws.blocks(1).view("<u8")[:, 0])

    @property
    def k(self) -> int:
        return len(self.matrix)

    @cached_property
    def votes(self) -> Floats:
        """The vote of an output (row) for each input: the mean over all outputs is the unbiased estimate."""
        return np.asarray(np.linalg.inv(self.matrix), dtype=np.float64)

    def support(self, frequencies: Floats) -> Floats:
        """The chance of each output, if these are the frequencies of inputs; any leading dimensions."""
        return np.asarray(frequencies @ self.matrix)

    def back(self, votes: Floats) -> Floats:
        """For each input the mean of `votes` over its outputs: the transpose of `support`."""
        return np.asarray(votes @ self.matrix.T)

    def variance(self, frequencies: Floats) -> Floats:
        """n times the variance of each input's unbiased estimate, if these are the frequencies."""
        return np.asarray(self.support(frequencies) @ self.votes**2 - frequencies**2)

    def joint(self, frequencies: Floats) -> Floats:
        """The chance that an output is both i and j."""
        return np.diag(self.support(frequencies))

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the largest chance that each output can have, whatever the input."""
        return np.asarray(self.matrix.min(axis=0)), np.asarray(self.matrix.max(axis=0))

    @property
    def best_guesses(self) -> float:
        """The sum over all outputs of the largest chance that any input gives them."""
        return float(self.bounds[1].sum())

    @cached_property
    def rising(self) -> bool:
        """Whether the likelihood ratio of any two inputs rises with the output, as for geometric noise."""
        return bool((np.diff(np.diff(self.logs, axis=0), axis=1) >= -1e-9).all())

    @property
    def numbers(self) -> dict[str, list[float]]:
        """What its tables follow from: the entries by distance, in the columns of both ends and in those between.

        >>> geometric(3, log(2)).numbers["ends"], geometric(2, log(2)).numbers["inside"]
        ([0.6666666666666666, 0.3333333333333333, 0.16666666666666666], [])
        """
        inside = self.matrix[1:, 1].tolist() if len(self.matrix) > 2 else []
        return {"ends": self.matrix[:, 0].tolist(), "inside": inside}

    def then(self, other: "MatrixRound") -> "MatrixRound":
        return MatrixRound(self.matrix @ other.matrix)


Round = Flip | MatrixRound


def noise_matrix(noise: Round, size: int) -> Floats:
    """The noise on symbols: row = input, column = output."""
    return noise.matrix if isinstance(noise, MatrixRound) else noise.q + noise.gain * np.eye(size)


def grr(k: int, eps: float) -> Flip:
    """Generalised randomised response: the truth e^eps times as likely as any other value.

    >>> flip = grr(3, log(2))
    >>> round(flip.p, 3), round(flip.q, 3)
    (0.5, 0.25)
    """
    q = exp(-eps) / (1 + (k - 1) * exp(-eps))
    return Flip(1 - (k - 1) * q, q)


def sue(eps: float) -> Flip:
    """Symmetric unary encoding: a one-hot vector differs in two bits, so each bit gets eps / 2."""
    q = exp(-eps / 2) / (1 + exp(-eps / 2))
    return Flip(1 - q, q)


def oue(eps: float) -> Flip:
    """Optimised unary encoding: ones are kept with 1/2, and the budget is spent on keeping zeros."""
    return Flip(0.5, exp(-eps) / (1 + exp(-eps)))


def geometric(k: int, eps: float) -> MatrixRound:
    """The truncated geometric mechanism over 0 .. k-1: eps per unit of distance.

    >>> geometric(3, log(2)).matrix.sum(axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    """
    places, ratio = np.arange(k), exp(-eps)
    distances = np.abs(places[:, None] - places[None, :])
    powers = np.array([exp(-eps * d) if -eps * d > IMPOSSIBLE else 0.0 for d in range(k)])
    matrix = powers[distances] / (1 + ratio)
    logs = -eps * distances - log1p(ratio)
    # What would be beyond an end is reported as the end.
    matrix[:, 1:-1] *= -expm1(-eps)
    logs[:, 1:-1] += log(-expm1(-eps))
    return MatrixRound(matrix, logs)


def end_evidence(first: Round, second: Round | None, t: float = 1) -> Floats:
    """ln of the likelihood, under each value, of t linked answers that all name the upper end; up to a constant.

    Where likelihood ratios rise, as in geometric rounds, answers at an end of the domain separate any two values most,
    and both ends alike. Without a second round, or for ever, the answer is the memo itself.

    >>> np.diff(end_evidence(geometric(4, 0.7), None)).round(9).tolist()
    [0.7, 0.7, 0.7]
    """
    assert isinstance(first, MatrixRound) and isinstance(second, MatrixRound | None), "only matrices have ends"
    if not (first.rising and (second is None or second.rising)):
        raise TypeError("the loss is unknown: likelihood ratios do not rise along the domain")
    if second is None or t == inf:
        return np.asarray(first.logs[:, -1])
    terms = first.logs + t * second.logs[:, -1]
    top = terms.max(axis=1)
    return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))


def width_law(k: int, held: int, own: float, flip: Flip) -> Floats:
    """The chances of 0, 1 .. k set bits, of which `held` can be; with chance `own`, one of these is the value's.

    >>> width_law(3, 3, 1.0, Flip(0.5, 0.2689)).round(3).tolist()
    [0.267, 0.464, 0.233, 0.036]
    """
    law = np.zeros(k + 1)
    law[: held + 1] = own * with_own_bit(held, flip) + (1 - own) * binomial(held, flip.q)
    return law


def with_own_bit(bits: int, flip: Flip) -> Floats:
    """The chances of 0, 1 .. set bits, of which one is set with p and the others with q."""
    return np.convolve(binomial(bits - 1, flip.q), [1 - flip.p, flip.p])


def binomial(n: int, q: float) -> Floats:
    """The chances of 0 .. n successes, in logarithms: their tails go far below the smallest float's accuracy."""
    if not 0 < q < 1:
        return np.asarray(np.eye(1, n + 1, n if q >= 1 else 0)[0])
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    times = np.arange(n + 1)
    logarithms = factorials[n] - factorials - factorials[::-1] + times * log(q) + (n - times) * log1p(-q)
    return np.asarray(np.exp(logarithms))
