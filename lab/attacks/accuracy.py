"""The chance to guess a device's value from t linked reports, or its true attribute (docs/audit.md, sections 2 and 3).

For bits the products of share and likelihood are independent, so the accuracy is the mean of the largest of k
variables. For symbols with even shares the best guess is the symbol that was seen most often. For other shares, and for
any noise, it is a sum over all counts of symbols: given the memo, the order of t reports says nothing.

A set is guessed by one element: right if the set has it, drawn or not. A number is guessed by answers about one slot.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from math import comb, inf, lgamma, log
from typing import Any

import numpy as np

from lab.attacks.report import Figure, plain
from protocols.arrays import Floats, PackedBits, Whole
from protocols.mechanisms import Flip, Threshold, above, noise_matrix
from protocols.privacy import attribute_guess, blind_guess, mean_of_largest, of_the_value
from protocols.question import Question
from protocols.scheme import Scheme

MOST_CELLS = 1 << 22  # answers with fresh hashes times values: all of them are gone through
MOST_COUNTS = 100_000  # of symbols in t reports: all of them are gone through
MOST_REPORTS = 200  # up to this number, symbols are enumerated
SAME = 1e-9  # scores that differ by less are equal
SEEN = (1, 10, inf)  # linked reports that figures are for
KEPT = Flip(1.0, 0.0)  # the second round of a memo that is sent as it is
GRID = 1 << 15  # points on which sums of shares are computed
DRAWS = 50_000  # of fakes without a closed law

Variable = tuple[Floats, Floats]
Priors = Mapping[str, Floats]
"""The shares of values that an attacker knows, by attribute."""


def unseen_guess(question: Question, prior: Floats | None) -> float:
    """The accuracy without any report: of the commonest value."""
    return blind_guess(question) if prior is None else float(prior.max())


def guess(question: Question, t: float, memoised: bool, prior: Floats | None = None) -> float | None:
    """The accuracy of the best guess from t linked reports (infinity: all there will ever be).

    None where it has no closed form: several reports with fresh hashes, and one of many values with uneven shares;
    ordered values and symbols with uneven shares, for t between 1 and infinity, if there are too many counts to go
    through (`guess_by_counts`); uneven shares of values in buckets, or among drawn fakes of bits. `best_guess` then has
    a bound.

    >>> from protocols.scheme import Scheme
    >>> from protocols.survey_text import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1,
    ...  attributes: [{name: few, range: {last: 9}, mechanism: l-grr}]}'''))
    >>> [round(guess(scheme.questions[0], t, memoised=True), 3) for t in (1, 2, 10, inf)]
    [0.232, 0.232, 0.401, 0.451]
    """
    share = question.share
    if question.numeric:
        return number_guess(question, t, memoised)
    if question.sets and not memoised and 1 < t < inf:
        return None  # every report is about an element that is drawn anew
    if prior is not None and np.ptp(prior) == 0:
        prior = None
    if not memoised and t == inf:
        return share + (1 - share) * unseen_guess(question, prior)
    if question.record.fresh and t > 1:
        return None
    if not memoised and t > 1:
        question = replace(of_the_value(question), share=share, fake=question.fake)
    if prior is None:
        truth = _accuracy(replace(question, share=1.0), t, None)
        if truth is None:
            return None
        others = (question.several - 1) / max(question.k - 1, 1)  # of a set: any other element is as likely in it
        return share * (truth + (1 - truth) * others) + (1 - share) / question.k
    if not memoised and t > 1 and question.faked and question.fake is not None:
        return None  # fakes without a memo are drawn again in every report
    return _accuracy(question, t, prior)


def number_guess(question: Question, t: float, memoised: bool, spread: Floats | None = None) -> float:
    """The accuracy of the best guess of a number, if all are alike beforehand, for devices with numbers spread so.

    The bit of a device stays while its number does, so without memos the noise of its reports is that of a round 2.
    """
    encoding = question.mechanism.encoding
    assert isinstance(encoding, Threshold)
    over = above(encoding.numbers, encoding.several)[:, None]
    asked = question if memoised else of_the_value(question)
    if t == inf:
        asked, t = replace(asked, mechanism=replace(asked.mechanism, second=None)), 1
    yes, no = bit_counts(asked, int(t))
    chances = (over * yes[:, None] + (1 - over) * no[:, None]) / encoding.several  # [slot, answers yes, number]
    top = chances >= chances.max(axis=2, keepdims=True) * (1 - SAME)
    shares = np.full(encoding.numbers, 1 / encoding.numbers) if spread is None else spread
    return float((chances * shares * top / top.sum(axis=2, keepdims=True)).sum())


def best_guess(scheme: Scheme, question: Question, t: float, prior: Floats | None = None) -> tuple[float | None, bool]:
    """The accuracy of the best guess from the reports of t periods, and whether it is exact.

    Where it has no closed form and there are memos, it is a bound: what all reports that there will ever be tell.
    """
    known = guess_in_periods(scheme, question, t, prior)
    if known is not None or not scheme.survey.longitudinal:
        return known, known is not None
    return guess(question, inf, True, prior), False


def guess_in_periods(scheme: Scheme, question: Question, t: float, prior: Floats | None = None) -> float | None:
    """The accuracy of the best guess from the linked reports of t consecutive periods.

    Where devices take turns (one_in: w), some have answered once more than others, and some perhaps not at all.
    """
    turns, memoised = scheme.survey.one_in, scheme.survey.longitudinal
    if turns == 1 or t == inf:
        return guess(question, t, memoised, prior)
    answers, more = divmod(int(t), turns)
    fewer = guess(question, answers, memoised, prior) if answers else unseen_guess(question, prior)
    again = guess(question, answers + 1, memoised, prior)
    return None if fewer is None or again is None else (more * again + (turns - more) * fewer) / turns


def tuple_guess(scheme: Scheme, t: float, priors: Mapping[str, Floats] | None = None) -> float | None:
    """The accuracy of the best guess of all values of a device at once.

    Under spl every attribute is guessed. Where one is answered, or true, the others are guessed by their shares alone;
    among fakes this holds for even shares.
    """
    priors = priors or {}
    if scheme.takes_turns and not scheme.sampling and t != inf:
        return None  # a device's attributes are answered in the same periods
    asked = scheme.questions
    alone = [replace(question, share=1.0) for question in asked]
    known = [guess_in_periods(scheme, question, t, priors.get(question.name)) for question in alone]
    accuracies = [accuracy for accuracy in known if accuracy is not None]
    if len(accuracies) < len(known):
        return None
    if not scheme.sampling:
        return float(np.prod(accuracies))
    unknown = [unseen_guess(question, priors.get(question.name)) for question in asked]
    others = [np.prod(unknown[:place] + unknown[place + 1 :]) for place in range(len(asked))]
    return float(np.mean([accuracy * rest for accuracy, rest in zip(accuracies, others, strict=True)]))


def _accuracy(question: Question, t: float, prior: Floats | None) -> float | None:
    """The accuracy of the best guess; with even shares (None), if the answers are true."""
    if t == inf or question.mechanism.second is None:  # the memo is all that there is to see
        question, t = replace(question, mechanism=replace(question.mechanism, second=None)), 1
    mechanism, encoding, noise = question.mechanism, question.mechanism.encoding, question.mechanism.one_report
    if prior is None and t == 1:
        return encoding.best_likelihoods(noise) / question.k
    shares = np.full(question.k, 1 / question.k) if prior is None else prior
    if isinstance(encoding.memo, PackedBits):
        unknown = prior is not None and (encoding.lifelong or (question.faked and question.fake is not None))
        return None if unknown else _largest_product(question, int(t), shares)
    if t > 1 and prior is None and isinstance(mechanism.first, Flip):
        return _named_most(question, int(t))
    if question.record.fresh:
        few = encoding.answer.count * encoding.k <= MOST_CELLS
        by_value = encoding.answers_by_value(noise) if few else None
        return None if by_value is None else float((shares[:, None] * by_value).max(axis=0).sum())
    return guess_by_counts(question, int(t), shares)


def _named_most(question: Question, t: int) -> float | None:
    """The chance that, of the symbols that values can have, the one seen most often is the true one."""
    encoding, first, second = question.mechanism.encoding, question.mechanism.first, question.mechanism.second
    assert isinstance(first, Flip) and isinstance(second, Flip)
    if t > MOST_REPORTS:
        return None
    sizes, counts = np.unique([len(np.unique(row)) for row in encoding.sent], return_counts=True)
    found, size = [], encoding.memo.count
    for reached in map(int, sizes):  # so many symbols can be those of values
        top = most_frequent(t, second, reached - 1, size - reached)
        others = first.q * (1 - top) if reached > 1 else 0.0  # of another memo, when the true symbol is seen most
        found.append(reached / question.k * (first.p * top + others + (size - reached) * first.q / reached))
    return float(np.average(found, weights=counts))


def most_frequent(t: int, second: Flip, rivals: int, free: int) -> float:
    """The chance that t draws of round 2 name the memo more often than each of `rivals` symbols; ties are shared.

    `free` further symbols may be named as often as they like. Counts are taken as Poisson variables given their sum,
    which makes them independent and keeps all terms between 0 and 1.
    """
    from scipy.stats import poisson  # takes over a second to import

    degrees, points = np.arange(t + 1), 4 * t + 64  # of transforms: longer sums hardly ever happen
    named, missed = poisson.pmf(degrees, t * second.p), poisson.pmf(degrees, t * second.q)
    anything = np.fft.rfft(poisson.pmf(degrees, free * t * second.q), points)
    total = 0.0
    for count in degrees:
        fewer = np.fft.rfft(np.where(degrees < count, missed, 0.0), points)
        for ties in range(rivals + 1):
            left = t - count * (ties + 1)
            if left < 0:
                break
            if count == 0 and ties < rivals:  # nobody is named less than never
                continue
            rest = np.fft.irfft(fewer ** (rivals - ties) * anything, points)
            choices = lgamma(rivals + 1) - lgamma(ties + 1) - lgamma(rivals - ties + 1)
            tied = ties * log(missed[count]) if ties and missed[count] > 0 else 0.0 if not ties else -inf
            total += named[count] * np.exp(choices + tied) / (ties + 1) * rest[left]
    return float(total / poisson.pmf(t, t))


def _largest_product(question: Question, t: int, prior: Floats) -> float:
    """For bits: E[max over values of share times likelihood ratio], the mean over answers without any value."""
    set_bit, unset = bit_counts(question, t)
    possible = unset > 0
    ratio = question.share * set_bit[possible] / unset[possible] + 1 - question.share
    certain = question.share * float(set_bit[~possible].sum())  # seen only if the bit is set in the truth
    shares, counts = np.unique(prior, return_counts=True)
    if len(shares) == 1:
        return mean_of_largest([(shares[0] * ratio, unset[possible])], copies=int(counts[0])) + certain
    return mean_of_largest([(share * ratio, unset[possible]) for share in prior]) + certain


def bit_counts(question: Question, t: int) -> tuple[Floats, Floats]:
    """P(c of t linked answers are ones), c = 0 .. t, for a bit that is set in the truth, and for one that is not."""
    from scipy.stats import binom  # takes over a second to import

    first, second = question.mechanism.first, question.mechanism.second or KEPT
    assert isinstance(first, Flip) and isinstance(second, Flip)
    ones = np.arange(t + 1)
    if_one, if_zero = binom.pmf(ones, t, second.p), binom.pmf(ones, t, second.q)
    return first.p * if_one + (1 - first.p) * if_zero, first.q * if_one + (1 - first.q) * if_zero


def guess_by_counts(question: Question, t: int, prior: Floats) -> float | None:
    """The accuracy of the best guess of a value from t linked reports; None if there are too many possible counts.

    >>> from protocols.scheme import Scheme
    >>> from protocols.survey_text import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1,
    ...  attributes: [{name: few, range: {last: 4}, mechanism: l-geometric}]}'''))
    >>> [round(guess_by_counts(scheme.questions[0], t, np.full(5, 0.2)), 3) for t in (1, 2, 10)]
    [0.51, 0.518, 0.745]
    """
    encoding, mechanism = question.mechanism.encoding, question.mechanism
    size, noise, fake = encoding.memo.count, mechanism.one_report, question.fake_answer
    if t > 1:
        noise, fake = mechanism.first, question.fake_memo
        if comb(t + size - 1, size - 1) > MOST_COUNTS:
            return None
    cells = noise_matrix(noise, size)
    if question.faked:
        cells = question.share * cells + (1 - question.share) * np.asarray(fake)
    likelihoods = cells.T  # [counts, cell]
    if t > 1:
        likelihoods = chances(counts_of(t, size), noise_matrix(mechanism.second or KEPT, size)) @ cells.T
    best = [[prior[row == cell].max(initial=0.0) for cell in range(size)] for row in encoding.sent]
    rows, times = np.unique(best, axis=0, return_counts=True)
    return float(np.average([(likelihoods * row).max(axis=1).sum() for row in rows], weights=times))


def counts_of(t: int, size: int) -> Whole:
    """All ways in which t reports can name `size` symbols, a row each.

    >>> counts_of(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    places = chain.from_iterable(combinations(range(t + size - 1), size - 1))
    bars = np.fromiter(places, dtype=np.int64).reshape(-1, size - 1)
    ends = np.full((len(bars), 1), t + size - 1)
    return np.diff(np.concatenate([np.full_like(ends, -1), bars, ends], axis=1), axis=1) - 1


def chances(counts: Whole, noise: Floats) -> Floats:
    """The chance of each row of counts, by the memo."""
    from scipy.special import gammaln, xlogy  # takes a while to import

    orders = gammaln(counts[0].sum() + 1) - gammaln(counts + 1).sum(axis=1)
    powers = np.stack([xlogy(counts, row).sum(axis=1) for row in noise], axis=1)
    return np.asarray(np.exp(orders[:, None] + powers))


def attribute_inference(
    questions: Sequence[Question], spread: Mapping[str, Floats], t: float = 1
) -> tuple[float, bool]:
    """The accuracy of the best guess of the true attribute, and whether it is exact.

    `spread` has the shares of each attribute's values. t is 1, or infinity: the observer knows the memos. The ratios of
    drawn fakes of bits have no closed law; it is drawn, with the same draws every time.
    """
    assert t in (1, inf), "one report, or all of them"
    laws = [_ratios(question, spread[question.name], t) for question in questions]
    exact = all(exact for _, exact in laws)
    return mean_of_largest([law for law, _ in laws]) / len(questions), exact


def _ratios(question: Question, shares: Floats, t: float) -> tuple[Variable, bool]:
    """The law of true to fake of one attribute, over its fakes, and whether it is exact."""
    if t == inf:
        question = replace(question, mechanism=replace(question.mechanism, second=None))
    noise, fake = question.mechanism.one_report, question.fake
    assert isinstance(noise, Flip), "fakes are flips"
    if question.mechanism.encoding.exclusive:
        faked = np.asarray(question.fake_answer)
        return ((shares * noise.gain + noise.q) / faked, faked), True
    if fake is None:
        return _of_zero_vectors(noise, shares), True
    if np.allclose(shares, fake, rtol=0, atol=1e-12):
        return (np.ones(1), np.ones(1)), True  # a fake is perturbed like a true answer
    random = np.random.default_rng(0)
    bits = random.random((DRAWS, question.k)) < noise.q
    values = random.choice(question.k, DRAWS, p=fake / fake.sum())
    rows = np.arange(DRAWS)
    bits[rows, values] = random.random(DRAWS) < noise.p
    up, down = noise.p / noise.q, (1 - noise.p) / (1 - noise.q)
    ratio = (down + (up - down) * (bits @ shares)) / (down + (up - down) * (bits @ fake))
    return (ratio, np.full(DRAWS, 1 / DRAWS)), False


def _of_zero_vectors(noise: Flip, shares: Floats) -> Variable:
    """down + (up - down) times the sum of the shares whose bit is set, each with chance q: by convolution.

    A share between two points of the grid is divided between them, which keeps the mean.
    """
    up, down = noise.p / noise.q, (1 - noise.p) / (1 - noise.q)
    frequency = np.fft.rfftfreq(GRID) * 2 * np.pi
    law = np.ones(GRID // 2 + 1, dtype=np.complex128)
    size = GRID // 2
    for share, count in zip(*np.unique(shares, return_counts=True), strict=True):
        place = share * size
        low = np.floor(place)
        step = np.exp(-1j * frequency * low) * (1 - (place - low) + (place - low) * np.exp(-1j * frequency))
        law = law * (1 - noise.q + noise.q * step) ** count
    chances = np.maximum(np.fft.irfft(law, GRID), 0.0)[: size + len(shares) + 1]
    sums = np.arange(len(chances)) / size
    return down + (up - down) * sums, chances / chances.sum()


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
        "target": "the whole tuple" if len(targets) > 1 else targets[0].name,
        "knows": ("the shares of all values" if any(q.name in priors for q in targets) else "even shares")
        + ("; the number" if targets[0].numeric else "; a value of the set" if targets[0].sets else ""),
        "reports": t,
        "luck": float(np.prod([blind_guess(question) for question in targets])),
    }


def guesses(scheme: Scheme, priors: Priors) -> Iterator[Figure]:
    """The figures of guesses of values, and of whole tuples."""
    for targets in guessed(scheme):
        whole, commonest = len(targets) > 1, [unseen_guess(q, priors.get(q.name)) for q in targets]
        if whole and priors and targets[0].faked:
            continue  # that has no closed form
        for t in SEEN:
            if whole:
                best, exact = tuple_guess(scheme, t, priors), True
            else:
                best, exact = best_guess(scheme, targets[0], t, priors.get(targets[0].name))
            if best is not None:
                terms = guess_terms(targets, priors, t)
                yield plain(**terms, histogram=float(np.prod(commonest)), best=best, exact=exact)


def which(scheme: Scheme, priors: Priors) -> Iterator[Figure]:
    """The figures of guesses of the true attribute, where others are fake."""
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
