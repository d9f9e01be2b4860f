"""The likelihood of linked answers of one attribute, under each value and if they are fake (docs/audit.md, section 2).

An observer who knows that some reports are one device's has t answers from one memo. With W_m the likelihood of the
answers given memo m, a value v has the likelihood sum_m P1(m|v) W_m. For bits the memo's bits are independent, so all
that counts is how often each bit was set. Likelihoods are logarithms, of answers in their order: so different ways to
divide reports among memos can be compared.

What a device keeps for life (its hash, its buckets, the slot of its threshold) is known to the observer. Of a set, the
values are its elements; of thresholds, the numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb, log

import numpy as np

from lab.attacks.accuracy import KEPT, bit_counts
from protocols.arrays import Column, Floats, PackedBits, Places, Traits
from protocols.mechanisms import Flip, FreshHash, Threshold, above, noise_matrix
from protocols.privacy import of_the_value
from protocols.question import Question

CELLS = 1 << 21  # likelihoods at once: bounds the memory
NEVER = 1e-300  # in place of a chance of 0, so that likelihoods stay finite


@dataclass(frozen=True, eq=False)
class Linked:
    """Logarithms of likelihoods, a row per device: under each value, and if the answers are fake (None: never)."""

    values: Floats
    fake: Floats | None

    def answer(self, share: float) -> Floats:
        """Under each value, if the answers are about it with chance `share`, and fake otherwise."""
        if self.fake is None or share == 1:
            return self.values
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp(np.log(share) + self.values, np.log1p(-share) + self.fake[:, None]))

    @property
    def against_fake(self) -> Floats:
        """ln of how much likelier the answers are under each value than if they are fake, if they can be."""
        return self.values if self.fake is None else self.values - self.fake[:, None]

    def true_to_fake(self, shares: Floats) -> Floats:
        """The same of all values, spread like `shares`, together."""
        return _log_mean(self.against_fake, shares)


def chunks(rows: Places, width: int) -> Iterator[Places]:
    """A few rows at a time, so that a table of this width for them has `CELLS` at most."""
    size = max(1, CELLS // max(1, width))
    return (rows[first : first + size] for first in range(0, len(rows), size))


def linked(question: Question, reports: Sequence[Column], traits: Traits, memoised: bool) -> Linked:
    """The likelihoods of some reports of each device: a column per report, a row per device.

    >>> from protocols.scheme import Scheme
    >>> from protocols.survey_text import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1,
    ...  attributes: [{name: few, values: [a, b, c]}]}'''))
    >>> answer = np.array([2], dtype=np.uint8)
    >>> found = linked(scheme.questions[0], [answer], None, memoised=False).values[0]
    >>> (found[2] - found).round(9).tolist()
    [1.0, 1.0, 0.0]
    """
    if question.numeric:
        return _of_numbers(question if memoised else of_the_value(question), reports)
    if not memoised and len(reports) > 1:
        parts = [linked(question, [report], traits, memoised) for report in reports]
        fakes = [part.fake for part in parts if part.fake is not None]
        return Linked(np.sum([part.values for part in parts], axis=0), np.sum(fakes, axis=0) if fakes else None)
    bits = isinstance(question.mechanism.encoding.answer, PackedBits)
    return (_of_bits if bits else _of_symbols)(question, reports, traits)


def _of_numbers(question: Question, reports: Sequence[Column]) -> Linked:
    """The place of the threshold in its slot is not known: so a number is above it with a chance."""
    encoding = question.mechanism.encoding
    assert isinstance(encoding, Threshold)
    ones = np.sum([report < encoding.several for report in reports], axis=0)
    over = above(encoding.numbers, encoding.several)[np.asarray(reports[0], dtype=np.int64) % encoding.several]
    yes, no = (_in_order(chances)[ones, None] for chances in bit_counts(question, len(reports)))
    return Linked(np.logaddexp(_log(over) + yes, _log(1 - over) + no), None)


def _in_order(chances: Floats) -> Floats:
    """ln of the chance of answers in their order, by how many of them are ones, from that of so many ones."""
    t = len(chances) - 1
    return np.asarray(_log(chances) - [log(comb(t, ones)) for ones in range(t + 1)])


def _log(chances: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(chances, NEVER)))


def _of_bits(question: Question, reports: Sequence[Column], traits: Traits) -> Linked:
    """From the evidence of each bit: ln of its likelihood if it is set in the truth, against not."""
    encoding = question.mechanism.encoding
    assert isinstance(encoding.answer, PackedBits)
    set_ones = sum(encoding.answer.unpack(report).astype(np.int64) for report in reports)
    yes, no = (_in_order(chances) for chances in bit_counts(question, len(reports)))
    evidence, same = (yes - no)[set_ones], no[set_ones].sum(axis=1)
    if encoding.lifelong:  # all values that are not held have the likelihood of no bit
        held = np.zeros_like(evidence, dtype=bool)
        np.put_along_axis(held, np.asarray(traits), True, axis=1)
        evidence = np.where(held, evidence, 0.0)
    values = evidence + same[:, None]
    if not question.faked:
        return Linked(values, None)
    return Linked(values, same if question.fake is None else _log_mean(evidence, question.fake) + same)


def _of_symbols(question: Question, reports: Sequence[Column], traits: Traits) -> Linked:
    encoding, first = question.mechanism.encoding, question.mechanism.first
    if isinstance(encoding, FreshHash):
        assert isinstance(first, Flip)
        (answers,) = reports  # nothing is memoised
        hashes, own = np.divmod(answers.astype(np.int64), encoding.g)
        supported = encoding.hashed(hashes[:, None], np.arange(question.k)[None, :]) == own[:, None]
        return Linked(np.asarray(np.where(supported, np.log(first.p), np.log(first.q)), dtype=np.float64), None)
    size = encoding.memo.count
    counts = np.zeros((len(reports[0]), size))
    for report in reports:
        counts[np.arange(len(report)), np.asarray(report, dtype=np.int64) % size] += 1
    memos = counts @ _log(noise_matrix(question.mechanism.second or KEPT, size)).T  # ln of the likelihood given each
    values, fake = _log_mean(memos, noise_matrix(first, size).T), None
    if question.faked and question.fake_memo is not None:
        fake = _log_mean(memos, question.fake_memo)
    if encoding.lifelong:
        values = np.take_along_axis(values, encoding.sent[np.asarray(traits)], axis=1)
    return Linked(values, fake)


def _log_mean(logs: Floats, shares: Floats) -> Floats:
    """ln of means of likelihoods `[device, ..]`, with these shares, or with each column of shares."""
    top = logs.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - top) @ shares) + (top if shares.ndim > 1 else top[:, 0]))
