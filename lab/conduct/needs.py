"""How many devices each kind of deviation needs, said before any device is started.

Each row is a deviation of one kind at its plainest. A number is such that the deviation is missed in at most one run
of a hundred, at the level of the whole family: exact where the deviation fixes the outcome, by the normal law where it
is a mean, and by simulation where pairs are compared. Weaker deviations of a kind need more.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations
from math import ceil, comb, log, sqrt
from typing import NamedTuple

import numpy as np

from lab.attacks.report import Need
from lab.conduct.bits import below_quantiles, told
from lab.conduct.rounds import change_law, has_law
from lab.conduct.simulating import MOST, enough, noise_of
from lab.conduct.testing import counted_tests
from lab.conduct.together import any_chance, coupling, has_noise, known_chance
from lab.conduct.values import choices, devices_for
from protocols.arrays import Floats
from protocols.mechanisms import Direct, Flip, Unary
from protocols.question import Question
from protocols.scheme import Scheme

MISSED = 0.01
WIDEST = 3  # attributes, those with the most values, whose pairs are simulated
SPREAD = 2.33  # standard deviations of a mean that are not exceeded with 1 - MISSED
COLUMNS = 6000  # of bits, pairs and parities in a period; what is more needs few devices more
ROOM = 1.2  # by which numbers from the normal law are larger


class Refusals(NamedTuple):
    """The chance that a gateway refuses a report, and that it refuses a retry of it, too."""

    first: float
    again: float


def needs(scheme: Scheme, periods: int, level: float, refused: Refusals) -> list[Need]:
    """Of every kind of deviation that can be found in such a survey."""
    single = level / max(1, counted_tests(scheme, periods))
    found = list(_of_requests(scheme, periods, single, refused))
    for question in scheme.questions:
        share = float(question.drawn) / scheme.survey.one_in
        found += [
            need.model_copy(update={"devices": ceil(need.devices / share)})
            for need in _of_question(question, scheme, periods, single)
        ]
    found += _of_pairs(scheme, periods, single)
    return found


def _of_requests(scheme: Scheme, periods: int, level: float, refused: Refusals) -> Iterator[Need]:
    most = _most(scheme)
    for text, chance in (
        ("retries have other bytes", refused.first),
        ("second retries have other bytes", refused.first * refused.again),
    ):
        devices = ceil(log(MISSED) / log(1 - chance) / periods)
        yield Need(deviation=text, finding="retry-changed", devices=devices)
    told = _to_tell(most, COLUMNS * periods, level)
    yield Need(deviation="bits tell one value of all reports", finding="told-by-bytes", devices=told)
    delays = enough(partial(_hurried, most, periods), level)
    yield Need(deviation="one value is sent in a tenth of the time", finding="told-by-bytes", devices=delays)
    if scheme.discloses:
        devices = _to_show(most, len(scheme.questions), COLUMNS * periods, level)
        text = "the attribute that is answered tells one value"
        yield Need(deviation=text, finding="told-by-bytes", devices=devices)
    again = _to_tell(most, COLUMNS, level)
    again += ceil(2 * SPREAD * sqrt(again))  # retries, and who has which value among them, are dealt by luck
    devices = ceil(again / (periods * refused.first))
    yield Need(deviation="bits of retries tell one value", finding="told-at-a-retry", devices=devices)


def _most(scheme: Scheme) -> int:
    return max(len(choices(attribute)) for attribute in scheme.survey.attributes)


def _hurried(values: int, periods: int, devices: int, rng: np.random.Generator) -> float:
    """The chance of luck of moments that tell a value, among all columns."""
    place = rng.integers(values, size=devices)
    moments = rng.random(devices) * np.where(place == 0, 0.1, 1.0)
    columns = below_quantiles(moments)
    luck = told(columns, place).chance
    return float(luck * COLUMNS * periods / columns.shape[1])


def _to_tell(values: int, columns: int, level: float) -> int:
    """Of how many devices a column that is set for one value alone tells the value."""
    each = 2
    while 2 * values * columns / comb(devices_for(each, values, values), each) > level:
        each += 1
    return devices_for(each, values, values)


def _to_show(values: int, questions: int, columns: int, level: float) -> int:
    """The same of a column that is set for one value, and for a share of the devices with others."""
    each = 2
    while True:
        devices = devices_for(each, values, values)
        mean = (devices - each) / questions
        ones = ceil(each + mean + SPREAD * sqrt(mean))
        if 2 * values * columns * comb(ones, each) / comb(devices, each) <= level:
            return devices
        each += 1


def _of_question(question: Question, scheme: Scheme, periods: int, level: float) -> Iterator[Need]:
    values = len(choices(question.listed if question.numeric else question.items))
    most = max(values, _most(scheme))
    if isinstance(question.mechanism.encoding, Direct | Unary) and isinstance(question.mechanism.one_report, Flip):
        yield from _of_answers(question, values, most, level)
    if has_law(question) and periods > 1 and not scheme.takes_turns:
        yield from _of_rounds(question, values, most, periods, level)


def _of_answers(question: Question, values: int, most: int, level: float) -> Iterator[Need]:
    name = question.name
    noise = question.mechanism.one_report
    assert isinstance(noise, Flip)
    single = level / (values * question.k)
    seen = question.mechanism.encoding.seen(noise)
    if question.sets:
        devices = devices_for(_for_means(seen.p, noise.p, single), values, most)
        yield Need(deviation=f"sets of {name} without paddings", finding="answers-off-law", devices=devices)
    elif not question.faked:
        sure = ceil(log(single / 2) / log(noise.p))
        devices = devices_for(sure, values, most)
        text = f"answers about one value of {name} have no noise"
        yield Need(deviation=text, finding="answers-off-law", devices=devices)


def _for_means(mean: float, other: float, level: float) -> int:
    """How many trials tell a share from another one."""
    return _normal(mean, mean * (1 - mean), other, other * (1 - other), level)


def _normal(mean: float, variance: float, other: float, other_variance: float, level: float) -> int:
    """How many draws tell a mean from another one; Chernoff's bound in place of the tail."""
    apart = abs(mean - other)
    if apart == 0:
        return MOST
    reach = sqrt(2 * log(2 / level) * variance) + SPREAD * sqrt(other_variance)
    return max(4, ceil(ROOM * (reach / apart) ** 2))


def _of_rounds(question: Question, values: int, most: int, periods: int, level: float) -> Iterator[Need]:
    name = question.name
    never = change_law(question, periods, 0)[0]
    own = ceil(log(level / 2 / values) / log(never))
    text = f"one value of {name} has no round 2"
    devices = devices_for(own, values, most)
    yield Need(deviation=text, finding="rounds-off-law", devices=devices)
    pairs = periods * (periods - 1) / 2
    same = change_law(question, 2, 0)
    text = f"two periods of {name} have the same noise"
    devices = ceil(log(level / 2 / pairs) / log(same[0])) + 1
    yield Need(deviation=text, finding="rounds-off-law", devices=devices)
    second = question.mechanism.second
    if not isinstance(second, Flip):
        return
    mean, variance = _moments(same)
    memo = _from_memo(question, second)
    other, other_variance = _moments(memo)
    text = f"the first report of {name} has no round 2"
    devices = _normal(mean, variance, other, other_variance, level / pairs)
    yield Need(deviation=text, finding="rounds-off-law", devices=devices)


def _moments(law: Floats) -> tuple[float, float]:
    places = np.arange(len(law))
    mean = float(law @ places)
    return mean, float(law @ (places - mean) ** 2)


def _from_memo(question: Question, second: Flip) -> Floats:
    """The law of changes from a memo to a report of it."""
    first = question.mechanism.first
    if not isinstance(question.mechanism.encoding, Unary) or not isinstance(first, Flip):
        return np.array([second.p, 1 - second.p])
    total = np.ones(1)
    for memo in [first.p, *[first.q] * (question.k - 1)]:
        changed = memo * (1 - second.p) + (1 - memo) * second.q
        total = np.convolve(total, [1 - changed, changed])
    return total


Chance = Callable[[int, np.random.Generator], float]


def _of_pairs(scheme: Scheme, periods: int, level: float) -> Iterator[Need]:
    asked = [question for question in scheme.questions if has_noise(question) and not question.axes]
    asked = sorted(asked, key=lambda question: -question.k)[:WIDEST]
    reports = periods if scheme.survey.longitudinal else 1
    for one, other in permutations(asked, 2):
        if not one.faked:
            chance = partial(_told_elsewhere, one, other, reports)
            devices = ceil(enough(chance, level) / float(one.drawn))
            text = f"answers to {one.name} are about another value, if {other.name} has a certain one"
            yield Need(deviation=text, finding="value-elsewhere", devices=devices)
        if not one.faked and scheme.survey.longitudinal and _shifts(one):
            chance = partial(_followed, one, other, reports)
            devices = ceil(enough(chance, level) / float(one.drawn))
            text = f"noise of {one.name} follows the value of {other.name}"
            yield Need(deviation=text, finding="value-elsewhere", devices=devices)
    if scheme.survey.solution != "spl" or scheme.takes_turns:
        return
    for one, other in combinations(asked, 2):
        if scheme.survey.longitudinal:
            chance = partial(_joined, one, other, reports)
            text = f"{one.name} and {other.name} share memos where they have the same place"
            yield Need(deviation=text, finding="attributes-joined", devices=enough(chance, level))


def _joined(one: Question, other: Question, reports: int, devices: int, rng: np.random.Generator) -> float:
    """The chance of luck that is found, where every second device has the same place of both."""
    alike = devices // 2
    words = rng.random(alike)
    place = rng.integers(max(one.k, other.k), size=alike)
    same = place % one.k == place % other.k
    seen = []
    for question in (one, other):
        own = place % question.k
        drawn = np.where(same, words, rng.random(alike))
        seen.append(noise_of(question, own, own, drawn, reports, rng))
    return known_chance(seen[0], seen[1], coupling(one, other), place, rng)


def _told_elsewhere(one: Question, other: Question, reports: int, devices: int, rng: np.random.Generator) -> float:
    """The same where answers are about the first value, if the other attribute has its first one."""
    own = rng.integers(one.k, size=devices)
    elsewhere = rng.integers(other.k, size=devices)
    cells = np.where(elsewhere == 0, 0, own)
    seen = noise_of(one, own, cells, rng.random(devices), reports, rng)
    return any_chance(np.eye(other.k)[elsewhere], seen, own, rng)


def _shifts(question: Question) -> bool:
    """Whether its memos are symbols that noise shifts by any amount alike."""
    return isinstance(question.mechanism.encoding, Direct) and isinstance(question.mechanism.first, Flip)


def _followed(one: Question, other: Question, reports: int, devices: int, rng: np.random.Generator) -> float:
    """The same where noise shifts memos as often as it should, but by the place of the other attribute's value."""
    first = one.mechanism.first
    assert isinstance(first, Flip)
    own = rng.integers(one.k, size=devices)
    elsewhere = rng.integers(other.k, size=devices)
    words = rng.random(devices)
    shifted = first.p + first.q * (elsewhere % (one.k - 1) + 0.5)
    words = np.where(words < first.p, words, shifted)
    seen = noise_of(one, own, own, words, reports, rng)
    return any_chance(np.eye(other.k)[elsewhere], seen, own, rng)
