"""All tests of the conduct of devices, from what was seen of them, as one family (Holm)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lab.attacks.beside import around, bits_of_bytes, padded
from lab.attacks.observed import Observed, Retry
from lab.attacks.report import Finding, Tested
from lab.conduct.answers import answers_chance
from lab.conduct.bits import QUANTILES, Told, below_quantiles, named_columns, told, with_pairs_and_parities
from lab.conduct.levels import holm
from lab.conduct.rounds import has_law, rounds_chances
from lab.conduct.together import any_chance, coupling, has_noise, known_chance, noise_seen
from lab.conduct.values import Assigned
from protocols.arrays import Bytes, Floats, Places, Whole
from protocols.mechanisms import Direct, FreshHash, Hashed, Threshold, Unary
from protocols.question import Question
from protocols.scheme import Scheme

SUPPORTING = Direct | Unary | Hashed | FreshHash | Threshold
"""Encodings whose answers are counted by what they support."""


class Check(NamedTuple):
    """One test: the code of its finding, what was tested, the chance of luck, and what is found if it is small."""

    code: str
    name: str
    chance: float
    found: str


def conduct_tests(observed: Observed, assigned: Assigned, seed: int) -> list[Check]:
    """Every test that these devices allow."""
    scheme = observed.scheme
    found = [*_of_requests(observed, assigned), *_of_retries(observed, assigned)]
    for question in scheme.questions:
        found += _of_answers(question, observed)
    if len(scheme.questions) > 1:
        found += _of_pairs(observed, assigned, np.random.default_rng([seed, observed.devices]))
    return found


def counted_tests(scheme: Scheme, periods: int) -> int:
    """How many tests there will be, at most, so that their level is known beforehand."""
    questions = scheme.questions
    found = 2 * len(scheme.survey.attributes)
    found += sum(_counts(question) * min(2, periods) for question in questions)
    found += sum(2 * _has_rounds(question, scheme) for question in questions)
    if len(questions) > 1:
        known = sum(has_noise(question) for question in questions)
        pairs = known * (known - 1)
        found += pairs + (pairs if _independent(scheme) else 0)
    return found


def _counts(question: Question) -> bool:
    encoding = question.mechanism.encoding
    return isinstance(encoding, SUPPORTING) and question.attribute.grid is None


def _has_rounds(question: Question, scheme: Scheme) -> bool:
    return has_law(question) and not scheme.takes_turns


def _independent(scheme: Scheme) -> bool:
    """Whether a device answers all attributes truly, each with noise of its own."""
    return scheme.survey.solution == "spl" and not scheme.takes_turns


def _of_requests(observed: Observed, assigned: Assigned) -> Iterator[Check]:
    bits, names = around(observed, observed.devices)
    parts = [with_pairs_and_parities(bits)]
    called = named_columns(names)
    for name, numbers in observed.around.items():
        if numbers.ndim == 2:
            parts += [below_quantiles(row) for row in numbers]
            called += [
                f"a small {name} in period {period}" for period in range(len(numbers)) for _ in range(1, QUANTILES)
            ]
    columns = np.concatenate(parts, axis=1)
    for name, places in _classes(assigned):
        best = told(columns, places) if len(called) else Told(1.0, 0, 0)
        column = called[best.column] if called else "nothing"
        text = f"what stands beside the answers tells a value of {name}, most of all {column}"
        yield Check("told-by-bytes", f"bytes and times against {name}", best.chance, text)


def _of_retries(observed: Observed, assigned: Assigned) -> Iterator[Check]:
    # One a device: a device is no two draws of a value, and would count as two.
    again = list({each.device: each for each in reversed(observed.retries)}.values())
    columns = _retried(again)
    devices = np.array([each.device for each in again], dtype=np.int64)
    for name, places in _classes(assigned):
        best = told(columns, places[devices]) if columns.size else Told(1.0, 0, 0)
        text = f"what is sent again tells a value of {name} beside its answers"
        yield Check("told-at-a-retry", f"retries against {name}", best.chance, text)


def _retried(again: list[Retry]) -> Bytes:
    if not again:
        return np.zeros((0, 0), dtype=np.uint8)
    rows = padded([each.request for each in again])
    bits, _ = bits_of_bytes(rows)
    return with_pairs_and_parities(bits) if bits.size else bits


def _classes(assigned: Assigned) -> Iterator[tuple[str, Places]]:
    """Of each attribute, which of the different values every device has."""
    for name, values in assigned.values.items():
        rows = values.reshape(len(values), -1)
        yield name, np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _of_answers(question: Question, observed: Observed) -> Iterator[Check]:
    name = question.name
    if _counts(question):
        for period in sorted({0, observed.periods - 1}):
            chance = answers_chance(question, observed, period)
            text = f"answers to {name} do not have the law of their noise"
            yield Check("answers-off-law", f"answers to {name}, period {period}", chance, text)
    if _has_rounds(question, observed.scheme) and observed.periods > 1:
        of_values, of_pairs = rounds_chances(question, observed)
        text = f"reports about one value of {name} differ too often, or not often enough"
        yield Check("rounds-off-law", f"round 2 of {name}, by value", of_values, text)
        text = f"reports of {name} in two periods differ too often, or not often enough"
        yield Check("rounds-off-law", f"round 2 of {name}, by period", of_pairs, text)


def _of_pairs(observed: Observed, assigned: Assigned, rng: np.random.Generator) -> Iterator[Check]:
    """Pairs of attributes: an answer and the value of the other one, and both answers."""
    asked = [question for question in observed.scheme.questions if has_noise(question)]
    noise = {question.name: noise_seen(question, observed) for question in asked}
    values = {question.name: observed.values[question.name][0].astype(np.int64) for question in asked}
    for one in asked:
        for other in asked:
            if one is not other and not (one.axes or other.axes):
                yield _elsewhere(observed, one, other, noise, values, rng)
    if not _independent(observed.scheme):
        return
    for place, one in enumerate(asked):
        for other in asked[place + 1 :]:
            yield from _both(observed, assigned, (one, other), noise, values, rng)


def _elsewhere(
    observed: Observed,
    one: Question,
    other: Question,
    noise: dict[str, Floats],
    values: dict[str, Whole],
    rng: np.random.Generator,
) -> Check:
    """Whether the answer to one attribute tells the value of another one, beyond that of its own."""
    rows = np.flatnonzero(observed.answered.all(axis=0) & observed.answering(one.name))
    elsewhere = np.eye(other.k)[values[other.name][rows]]
    chance = any_chance(elsewhere, noise[one.name][rows], values[one.name][rows], rng)
    text = f"the answers to {one.name} tell the value of {other.name}"
    return Check("value-elsewhere", f"answers to {one.name} against {other.name}", chance, text)


def _both(
    observed: Observed,
    assigned: Assigned,
    questions: tuple[Question, Question],
    noise: dict[str, Floats],
    values: dict[str, Whole],
    rng: np.random.Generator,
) -> Iterator[Check]:
    """Whether the noise of two attributes is independent, for devices that have the same place of both."""
    one, other = questions
    rows = np.flatnonzero(observed.answered.all(axis=0) & assigned.alike)
    strata = values[one.name][rows] * other.k + values[other.name][rows]
    seen = noise[one.name][rows], noise[other.name][rows]
    names = f"{one.name} and {other.name}"
    text = f"the noise of {names} is not independent"
    known = known_chance(seen[0], seen[1], coupling(one, other), strata, rng)
    yield Check("attributes-joined", f"noise of {names}, same words", known, text)
    oddest = any_chance(seen[0], seen[1], strata, rng)
    yield Check("attributes-joined", f"noise of {names}, any two parts", oddest, text)


def changed_retries(observed: Observed) -> list[Finding]:
    """Reports that were sent again with other bytes: one is enough, whatever the level."""
    changed = sum(not each.same for each in observed.retries)
    if not changed:
        return []
    text = f"{changed:,} of {len(observed.retries):,} retries have other bytes than what came first"
    return [Finding(code="retry-changed", text=text, defect=True)]


def judged(tests: list[Check], level: float) -> tuple[list[Tested], list[Finding]]:
    """Each test with its chance in the family, and what is found: wrongly with a chance of at most `level` in all."""
    adjusted = holm([test.chance for test in tests])
    shown = []
    found = []
    for test, chance in zip(tests, adjusted, strict=True):
        shown.append(Tested(name=test.name, chance=test.chance, adjusted=chance))
        if chance <= level:
            text = f"{test.found}; by luck, among {len(tests)} tests: {chance:.1g}"
            found.append(Finding(code=test.code, text=text, defect=True))
    return shown, found
