"""Tests of the conduct of devices: honest ones pass at any level, and each deviation needs as many as the plan says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lab.attacks.observed import Observed, Retry
from lab.conduct.answers import answers_chance
from lab.conduct.levels import Law, binomial_chances, sum_chance
from lab.conduct.needs import Refusals, needs
from lab.conduct.rounds import change_law, rounds_chances
from lab.conduct.testing import Check, changed_retries, conduct_tests, counted_tests, judged
from lab.conduct.values import Assigned, assigned, choices
from protocols.arrays import Floats
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import with_paddings
from tests.helpers.surveys import of_size, scheme_with, sets_of
from tests.lab.calling import LEVEL
from tests.lab.observing import TWO_ROUNDS, Answer, of_any_kind, observe

PERIODS = 4
REFUSALS = Refusals(0.05, 1 / 3)
PAIR = of_size(3, "a", mechanism="l-grr"), of_size(5, "b", mechanism="l-osue")
NUMBER = {"name": "n", "range": {"last": 6}, "mechanism": "threshold", "parameter": 2}
SCHEMES: dict[str, Callable[[], Scheme]] = {
    "symbols": lambda: scheme_with(of_size(4, mechanism="l-grr"), **TWO_ROUNDS),
    "bits": lambda: scheme_with(of_size(6, mechanism="l-osue"), **TWO_ROUNDS),
    "hashes": lambda: scheme_with(of_size(6, mechanism="loloha"), **TWO_ROUNDS),
    "ordered": lambda: scheme_with(of_size(5, mechanism="l-geometric"), **TWO_ROUNDS),
    "fresh hashes": lambda: scheme_with(of_size(6, mechanism="olh"), eps=1.0),
    "one-shot bits": lambda: scheme_with(of_size(6, mechanism="oue"), eps=1.0),
    "sets": lambda: scheme_with(sets_of(5, 3), **TWO_ROUNDS),
    "numbers": lambda: scheme_with(NUMBER, **TWO_ROUNDS),
    "two attributes": lambda: scheme_with(*PAIR, solution="spl", **TWO_ROUNDS),
    "sampled": lambda: scheme_with(*PAIR, solution="smp", **TWO_ROUNDS),
    "fakes": lambda: scheme_with(of_size(3, "a"), of_size(5, "b"), solution="rs+fd", **TWO_ROUNDS),
}


def seen_of(scheme: Scheme, people: Assigned, seed: int, answer: Answer = of_any_kind) -> Observed:
    """What devices with these values report, if they answer like this."""
    values: dict[str, Any] = {}
    for question in scheme.questions:
        places = question.places(people.values)
        if question.sets:
            places = with_paddings(places, question.items.k, question.several)[:, : question.several]
        values[question.name] = np.array([places] * PERIODS)
    return observe(scheme, values, answer, seed)


def checks(scheme: Scheme, devices: int, seed: int, answer: Answer = of_any_kind) -> list[Check]:
    people = assigned(scheme.survey, devices, seed)
    return conduct_tests(seen_of(scheme, people, seed, answer), people, seed)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_conduct_of_honest_devices_is_not_refuted(name: str) -> None:
    scheme = SCHEMES[name]()
    found = checks(scheme, 400, 1)
    assert not judged(found, LEVEL)[1]
    assert 2 <= len(found) <= counted_tests(scheme, PERIODS)
