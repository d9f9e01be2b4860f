"""What an attacker can do with a single report, in closed form (PROTOCOLS 4), and how widths of answers show forging.

Two guesses: the value of an attribute, and which attribute is true among fakes. Both are the accuracy of the best
possible guess, so no classifier does better.
"""

from collections.abc import Sequence

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.mechanisms.encodings import bit_flip
from protocols.mechanisms.mechanism import Channel
from protocols.mechanisms.places.rounds import PlaceRound, PlanarChannel
from protocols.mechanisms.rounds import Flip, MatrixRound
from protocols.question import Question

# A discrete random variable: what it can be, and how likely.
Variable = tuple[Floats, Floats]


def value_guess(question: Question) -> float:
    """The chance to guess a device's value from one report, if all values are alike beforehand.

    The best guess is the value under which the answer is likeliest, so the accuracy is the sum over all answers of the
    largest likelihood, divided by k. From a fake answer the guess is right with probability 1/k. Of sets it is right if
    the set has the element, drawn or not, if all padded sets of L elements are alike beforehand; by luck with L/k.

    >>> from protocols.mechanisms.catalogue import RECORDS, build
    >>> from protocols.mechanisms.mechanism import Budget
    >>> from protocols.survey.attribute import Attribute
    >>> budget, coin = Budget(1.0), Attribute(name="a", values=("x", "y"))
    >>> asked = Question(coin, build("grr", 2, budget), RECORDS["grr"], budget)
    >>> round(value_guess(asked), 4)
    0.7311
    """
    mechanism = question.mechanism
    if isinstance(mechanism.second, PlaceRound):  # a bound: as if the guess were about the memo
        return mechanism.encoding.best_likelihoods(mechanism.second) / question.k
    best = mechanism.encoding.best_likelihoods(mechanism.one_report)
    if question.sets:  # the elements that were not drawn are any others
        return (best + (question.several - 1) * (question.k - best) / (question.k - 1)) / question.k
    return (question.share * best + 1 - question.share) * blind_guess(question)


def blind_guess(question: Question) -> float:
    """How often a guess without a report is right: of sets of an element, of thresholds of the number."""
    return 1 / question.sources[0].k if question.numeric else question.several / question.k


def attribute_guess(questions: Sequence[Question], same: bool) -> float:
    """The chance to guess from one report which attribute is true.

    Not `same`: values are spread like the fakes (evenly, where fakes are zero vectors). `same`: all devices have the
    same values, which is the worst case (the accuracy is convex in the shares); only for uniform and zero fakes.
    """
    return mean_of_largest([_ratio(question, same) for question in questions]) / len(questions)


def _ratio(question: Question, same: bool) -> Variable:
    """The likelihood ratio of a true answer to a fake one, as fakes are drawn."""
    k, fake, noise = question.k, question.fake, question.mechanism.one_report
    assert isinstance(noise, Flip), "fakes are flips"
    if fake is not None and not same:
        if question.fake_kind == "noisy":
            return np.ones(1), np.ones(1)  # it is perturbed like a true answer
        faked = np.asarray(question.fake_answer)  # a bare symbol has the noise of round 2 only, or none
        return (fake * noise.gain + noise.q) / faked, faked
    assert fake is None or np.ptp(fake) == 0, "the worst case is known for uniform and zero fakes"
    if question.mechanism.encoding.exclusive:
        return np.array([k * noise.p, k * noise.q]), np.array([1 / k, 1 - 1 / k])
    from scipy.stats import binom  # takes over a second to import

    own, others = np.meshgrid([0, 1], np.arange(k))  # whether the common value's bit is set, and how many others are
    chances = np.where(own, noise.q, 1 - noise.q) * binom.pmf(others, k - 1, noise.q)  # of a zero vector
    up, down = noise.p / noise.q, (1 - noise.p) / (1 - noise.q)
    of_own = np.where(own, up, down)
    of_any = (of_own + others * up + (k - 1 - others) * down) / k
    true = of_own if same else of_any
    if fake is None:
        return true.ravel(), chances.ravel()
    return (true / of_any).ravel(), (chances * of_any).ravel()


def forged_weight(channel: Channel) -> float:
    """How many people one forged report can add to the estimate of a value.

    >>> from protocols.mechanisms.channels import SupportChannel
    >>> from protocols.mechanisms.rounds import grr
    >>> round(forged_weight(SupportChannel(100, grr(100, 1.0), exclusive=True)), 1)
    58.6
    """
    assert not isinstance(channel, PlanarChannel), "the estimate of places is no sum, so no report has a weight in it"
    if isinstance(channel, MatrixRound):
        return float(channel.votes.max())
    return float((1 - channel.floor.min()) / channel.gain)


def mean_of_largest(variables: Sequence[Variable], copies: int = 1) -> float:
    """E[max] of independent variables, of which each is there `copies` times.

    From the chances that a variable is above each place, which keep their precision where they are small: there the
    places may be very large.

    >>> coin = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    >>> mean_of_largest([coin, coin]), mean_of_largest([coin], copies=3)
    (0.75, 0.875)
    """
    places = np.unique(np.concatenate([values for values, _ in variables]))
    none_above = np.zeros(len(places))  # ln of the chance
    for values, chances in variables:
        order = np.argsort(values)
        above = np.append(np.cumsum(chances[order][::-1])[::-1], 0.0)
        at = np.minimum(above[np.searchsorted(values[order], places, side="right")], 1.0)
        with np.errstate(divide="ignore"):
            none_above += copies * np.log1p(-at)
    above_all = np.concatenate([[1.0], -np.expm1(none_above)])
    return float(places @ -np.diff(above_all))


def width_laws(question: Question) -> Floats:
    """The chances that an honest answer supports 0, 1 .. k values: the law of a survey is a mixture of the rows.

    One row where the law does not depend on the value; none where every answer supports one value, and for hashes that
    are new in every report: nearly all of them support the same number, whoever chose them.

    >>> from protocols.mechanisms.catalogue import RECORDS, build
    >>> from protocols.mechanisms.mechanism import Budget
    >>> from protocols.survey.attribute import Attribute
    >>> budget, three = Budget(1.0), Attribute(name="a", values=("x", "y", "z"))
    >>> width_laws(Question(three, build("oue", 3, budget), RECORDS["oue"], budget)).round(4).tolist()
    [[0.2672, 0.4638, 0.2328, 0.0362]]
    """
    encoding = question.mechanism.encoding
    if not encoding.widths:
        return np.zeros((0, question.k + 1))
    about_a_value = question.share if question.fake_kind == "zero" else 1.0
    return encoding.width_laws(bit_flip(question.mechanism.one_report), about_a_value)
