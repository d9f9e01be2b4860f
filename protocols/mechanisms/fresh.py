"""The encoding with a new hash in every report: many values in a few bytes (PROTOCOLS 2).

Which values answers support is computed for all values at once, by a Fourier transform.

A value is a vector of digits of base g, a hash is one too, and it sends the value to their inner product modulo g. An
answer (hash x, symbol y) supports every value v with x·v = y. With w = exp(2 pi i / g), it does so as often as 1/g
times the sum of w^(c (x·v - y)) over c = 0 .. g - 1. For c = 0 that is 1. The rest is a Fourier transform over all
vectors of digits, at v, of w^(-c y) at the vector c x. Supports are whole numbers, so the sums are rounded: results are
exact, and the same on every machine. For that they must be near whole numbers. With n answers, N vectors and
u = 2^-53, a support errs by

- adding up: a vector gets at most n numbers of length 1, an addition errs by at most n u, and each of n answers is
  added to g - 1 vectors. That is at most 1.5 n^2 u: 0.0002 for the `MOST_AT_ONCE` answers of a part, if all are the
  same.
- transforming: for each digit at most 4 g^1.5 u of the length of the result, even if its g terms are added one by one.
  That length is at most n g sqrt(N). So it is at most 4 digits g^1.5 n sqrt(N) u: 0.003 for 53^4 vectors.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from protocols.arrays.aliases import Column, Counts, Floats, Mask, Places, Values, Whole
from protocols.mechanisms.channels import Among, Together
from protocols.mechanisms.encodings import ByHash, Direct, Plain, Tables, bit_flip
from protocols.mechanisms.rounds import Flip, Round
from protocols.randomness.keystream import Draws
from protocols.randomness.sampling import uniform

MOST_AT_ONCE = 1 << 20
NEAR = 0.25


def _transformed(answers: Column, g: int, digits: int) -> Floats:
    """The transform is real, so the spectrum is made for half of the last digits only."""
    if int(answers.max()) >= g ** (digits + 1):
        raise ValueError(f"an answer is not one of 0..{g ** (digits + 1) - 1}")
    hashes, symbols = np.divmod(answers.astype(np.int64), g)
    shape, turns = (g,) * (digits - 1) + (g // 2 + 1,), np.exp(-2j * np.pi / g * np.arange(g))
    half = np.zeros(shape, dtype=np.complex128)
    flat, alone = half.reshape(-1), hashes == 0
    flat[0] = np.where(symbols[alone] == 0, g - 1, -1).sum()  # the hash 0 is at the place 0 for all c
    vectors, symbols = np.stack(np.unravel_index(hashes[~alone], (g,) * digits)), symbols[~alone]
    for c in range(1, g):
        turned = vectors * c % g
        there = np.flatnonzero(turned[-1] <= g // 2)
        np.add.at(flat, np.ravel_multi_index(tuple(turned[:, there]), shape), turns[symbols[there] * c % g])
    for axis in range(digits - 1):  # one after the other: no more than two arrays are in memory
        half = np.fft.ifft(half, axis=axis, norm="forward")
    return np.fft.irfft(half, n=g, norm="forward").reshape(-1)


@dataclass(frozen=True)
class FreshHash(ByHash, Plain):
    """A value is hashed to one of g symbols, g a prime, by a hash that is drawn for the report (PROTOCOLS 2, OLH).

    A value is its number in digits of base g, a hash is as many digits, and it sends the value to their inner product
    modulo g.

    >>> FreshHash(1_000_000, 3).digits, FreshHash(1_000_000, 3).answer.bits
    (13, 23)
    """

    k: int
    g: int
    kind = "fresh"
    widths = 0

    @cached_property
    def digits(self) -> int:
        """The fewest in which every value can be written."""
        return next(digits for digits in range(1, 64) if self.g**digits >= self.k)

    def together(self, flip: Flip) -> Together:
        """Two values are supported together by 1/g^2 of the answers, and by p/g if the truth is on the line of both.

        The line of u and w has the values u + c (w - u), digit by digit. A hash that sends two of its values together
        sends all of them together.
        """
        alone = 1 / self.g**2

        def joint(values: Floats, places: Places) -> Floats:
            u, w = np.meshgrid(places, places, indexing="ij")
            on_line = sum(self._share(values, self._on_line(u, w, c)) for c in range(self.g))
            return np.asarray(alone + (flip.p / self.g - alone) * on_line)

        return joint

    def among(self, flip: Flip) -> Among:
        """Over a group: the mean square of how many members an answer supports, less the mean.

        An answer with the hash x and the symbol y has a chance that is linear in the share of values that x sends to y.
        Pairs of members are sent together by all hashes if they are one, and by 1/g of them if not.
        """

        def total(values: Floats, group: Mask) -> float:
            size, inside, mass = int(group.sum()), float(values[group].sum()), float(values.sum())
            least = mass * flip.q + (1 - mass) / self.g  # the chance of a symbol to which no value is sent
            together = (mass * size**2 + (self.g - 1) * self._sent_together(values, group)) / self.family
            seen = self.seen(flip)
            return least * size * (1 + (size - 1) / self.g) + flip.gain * together - seen.q * size - seen.gain * inside

        return total

    @property
    def reached(self) -> float:
        """All symbols, unless all digits of the hash but the first are 0: every value below g^(digits-1) is there."""
        first = 1 + (self.k - 1) // self.g ** (self.digits - 1)
        return float(self.g - (self.g - 1) * (1 + self.g - first) / self.family)

    def memo_tables(self, noise: Round, bare: Floats | None = None) -> Tables:
        return uniform(self.g).integers, *Direct(self.g).memo_tables(noise)

    def memoise(self, cells: Values, noise: Round, draws: Draws) -> Column:
        """The only round: a hash, digit by digit, and the noise on the symbol that it sends the value to."""
        drawn = uniform(self.g).sample(draws.fork(1), self.digits)
        powers = self.g ** np.arange(self.digits - 1, -1, -1, dtype=np.int64)
        hashes = drawn.astype(np.int64) @ powers
        symbols = Direct(self.g).memoise(self.hashed(hashes, cells), noise, draws)
        return (hashes * self.g + symbols).astype(self.answer.dtype)

    def supports(self, answers: Column) -> Counts:
        """How many of some answers support each value; ValueError if one is none.

        It takes as long for a million of them as for one.

        >>> FreshHash(2, 2).supports(np.array([0 * 2 + 0, 1 * 2 + 1], dtype=np.uint8)).tolist()
        [1, 2]
        """
        supports = np.zeros(self.k, dtype=np.int64)
        for start in range(0, len(answers), MOST_AT_ONCE):
            part = answers[start : start + MOST_AT_ONCE]
            sums = (_transformed(part, self.g, self.digits)[: self.k] + len(part)) / self.g
            nearest = np.rint(sums)
            if np.abs(sums - nearest).max() > NEAR:
                raise ArithmeticError("supports are not near whole numbers: the Fourier transform is not exact enough")
            supports += nearest.astype(np.int64)
        return supports

    def count(self, answers: Column, groups: Whole, size: int) -> Counts:
        return np.stack([self.supports(answers[groups == group]) for group in range(size)])

    def answers_by_value(self, noise: Round) -> Floats:
        flip, (hashes, symbols) = bit_flip(noise), np.divmod(np.arange(self.answer.count), self.g)
        sent = self.hashed(hashes[None, :], np.arange(self.k)[:, None])
        return np.asarray(np.where(sent == symbols, flip.p, flip.q) / self.family)

    def fresh_pairs(self, noise: Round) -> tuple[Floats, Floats]:
        """Two answers tell something only if both hashes divide the values alike.

        Few values are gone through. Many are taken as all vectors of digits: then two hashes divide them alike, or
        independently of each other; alike and the same symbol, another one, and not alike.
        """
        flip, g, answers = bit_flip(noise), self.g, self.answer.count
        if answers <= FEW_ANSWERS and answers * self.k <= FEW_CELLS:
            by_value = self.answers_by_value(noise)
            marginal = by_value.mean(axis=0)
            return by_value.T @ by_value / self.k, np.outer(marginal, marginal)
        alike = (1 - 1 / self.family) * (g - 1) / self.family
        same = flip.p**2 + (g - 1) * flip.q**2
        together = np.array([alike * same, alike * (1 - same), 1 - alike])
        return together, np.array([alike / g, alike * (1 - 1 / g), 1 - alike])

    def forged(self, targets: Places) -> tuple[float, float]:
        return float(len(targets)), len(targets) / self.g

    def _on_line(self, u: Whole, w: Whole, c: int | Whole) -> Whole:
        point, power = np.zeros_like(u), 1
        for _ in range(self.digits):
            (u, a), (w, b) = np.divmod(u, self.g), np.divmod(w, self.g)
            point = point + (a + c * (b - a)) % self.g * power
            power *= self.g
        return point

    def _share(self, values: Floats, points: Whole) -> Floats:
        """The shares of points; a vector of digits beyond the last value has none."""
        return np.where(points < self.k, values[np.minimum(points, self.k - 1)], 0.0)

    def _sent_together(self, values: Floats, group: Mask) -> float:
        """How much of all values is sent with two members of a group, over hashes: one of those that divide alike.

        The Fourier transform over all vectors of digits, at the multiples of a hash, is the transform over symbols of
        what the hash sends to each. Members are transformed as real, shares as imaginary parts.
        """
        whole = np.zeros(self.family, dtype=np.complex128)
        whole[: self.k] = group + 1j * values
        spectrum = np.fft.fftn(whole.reshape((self.g,) * self.digits)).reshape(-1)
        found, factors = 0.0, np.arange(self.g)
        for power in (self.g**digit for digit in range(self.digits)):
            for start in range(power, 2 * power, HASHES_AT_ONCE):  # hashes whose first digit other than 0 is 1
                hashes = np.arange(start, min(start + HASHES_AT_ONCE, 2 * power))
                sent = np.fft.ifft(spectrum[self._on_line(np.zeros_like(hashes), hashes, factors[:, None])], axis=0)
                found += float((sent.real**2 * sent.imag).sum())
        return found


HASHES_AT_ONCE = 1 << 14
FEW_ANSWERS, FEW_CELLS = 1024, 1 << 17
