"""What devices in JavaScript answer follows the enumerated channel: a chi-square over every possible report."""

import json
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from hearsay_device import Limits
from protocols.mechanisms.encodings import Direct, Unary
from protocols.mechanisms.lifelong import Buckets, Hashed
from protocols.question import Question
from protocols.scheme import Scheme
from tests.clients.cases import ANY
from tests.clients.libraries import Clock, open_device
from tests.helpers.enumeration import answers, combine
from tests.helpers.surveys import of_size, scheme_with

DEVICES = 1_500
RARE = 4
TWO: dict[str, Any] = {"eps_inf": 1.5, "eps_1": 1.0}
CASES = {
    "l-grr": (scheme_with(of_size(5, mechanism="l-grr"), **TWO), [3]),
    "l-oue": (scheme_with(of_size(3, mechanism="l-oue"), eps_inf=2, eps_1=0.5), [2]),
    "l-geometric": (scheme_with(of_size(4, mechanism="l-geometric"), **TWO), [1]),
    "loloha": (scheme_with(of_size(20, mechanism="loloha", parameter=2), **TWO), [17]),
    "dbitflip": (scheme_with(of_size(5, mechanism="dbitflip", parameter=2), eps_inf=1), [4]),
    "smp": (scheme_with(of_size(3), of_size(2, "b"), **TWO), [2, 0]),
    "spl": (scheme_with(of_size(3), of_size(2, "b"), eps=1, solution="spl"), [2, 0]),
    "rs+fd": (
        scheme_with(of_size(3, mechanism="grr"), of_size(2, "b", mechanism="oue-z"), **TWO, solution="rs+fd"),
        [1, 1],
    ),
    "rs+rfd": (
        scheme_with(
            of_size(3, mechanism="grr-r", prior=[0.6, 0.3, 0.1]),
            of_size(2, "b", mechanism="oue-r", prior=[0.8, 0.2]), **TWO, solution="rs+rfd",
        ),
        [2, 1],
    ),
}  # fmt: skip


@pytest.mark.long(part="clients")
@pytest.mark.parametrize("name", CASES)
def test_answers_of_javascript_devices_follow_the_enumerated_channel(name: str) -> None:
    scheme, places = CASES[name]
    values = {q.name: q.attribute.values[place] for q, place in zip(scheme.questions, places, strict=True)}
    reports = [_report(scheme, values, f"{name} {device}") for device in range(DEVICES)]
    truths, fakes = zip(*(answers(q, 1, scheme.survey.longitudinal) for q in scheme.questions), strict=True)
    expected = _seen(scheme, combine(scheme, list(truths), list(fakes))[tuple(places)])
    observed = np.bincount([_output(scheme, report) for report in reports], minlength=len(expected))
    assert observed[expected == 0].sum() == 0
    seen, chances = _pooled(observed, expected)
    assert len(seen) > 1
    assert chisquare(seen, chances * DEVICES / chances.sum()).pvalue > 1e-4


def _report(scheme: Scheme, values: dict[str, str], entropy: str) -> dict[str, str]:
    device = open_device("javascript", None, Clock(scheme.survey.start.timestamp()), Limits(**ANY), entropy)
    device.join(scheme.terms, trust_first_use=True)
    return dict(json.loads(device.settle(scheme.survey.id, values).report)["answers"])


def _seen(scheme: Scheme, expected: Any) -> Any:
    """Of buckets only the bits are seen, not which ones are held."""
    encoding = scheme.questions[0].mechanism.encoding
    if not isinstance(encoding, Buckets):
        return expected
    seen = np.zeros(2**encoding.k)
    chances = iter(expected)
    for held in combinations(range(encoding.k), encoding.d):
        for bits in product((0, 1), repeat=encoding.d):
            ones = {place for place, bit in zip(held, bits, strict=True) if bit}
            seen[int("".join(str(int(i in ones)) for i in range(encoding.k)), 2)] += next(chances)
    return seen


def _pooled(observed: Any, expected: Any) -> tuple[Any, Any]:
    """Rare outputs together with the next one, so that each is expected `RARE` times or more."""
    order = np.argsort(expected)
    first = int(np.searchsorted(np.cumsum(expected[order]) * DEVICES, RARE))
    rare, often = order[: first + 1], order[first + 1 :]
    often, more = often[expected[often] * DEVICES >= RARE], often[expected[often] * DEVICES < RARE]
    rare = np.concatenate([rare, more])
    return np.append(observed[often], observed[rare].sum()), np.append(expected[often], expected[rare].sum())


def _output(scheme: Scheme, report: dict[str, str]) -> int:
    """The place of a report in the enumeration."""
    sizes = [_outputs(question) for question in scheme.questions]
    if scheme.discloses:
        ((name, answer),) = report.items()
        place = scheme.survey.index(name)
        return sum(sizes[:place]) + _answer(scheme.questions[place], bytes.fromhex(answer))
    output = 0
    for question, size in zip(scheme.questions, sizes, strict=True):
        output = output * size + _answer(question, bytes.fromhex(report[question.name]))
    return output


def _outputs(question: Question) -> int:
    encoding = question.mechanism.encoding
    return int(2**question.k if isinstance(encoding, Unary) else encoding.k)


def _answer(question: Question, data: bytes) -> int:
    encoding, number = question.mechanism.encoding, int.from_bytes(data, "little")
    if isinstance(encoding, Direct | Hashed):
        return number
    bits = [number >> i & 1 for i in range(question.k)]
    return int("".join(map(str, bits)), 2)
