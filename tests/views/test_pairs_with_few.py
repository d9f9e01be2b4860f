"""Estimates of pairs are made with the answers to both attributes, however few they are."""

import numpy as np

from stream_app.counting import Statistics
from stream_app.finals import Final, NotCounted
from tests.helpers.crowd import scheme_of
from tests.helpers.published import build_histogram
from views.past import PeriodAnswers

ATTRIBUTES = "{name: a, values: [x, y, z], mechanism: l-grr}, {name: b, values: [p, q]}"
SCHEME = scheme_of(ATTRIBUTES, "eps_inf: 4, eps_1: 3, crosses: [{of: [a, b], share: 0.4}]")


def statistics(supports: list[int]) -> Statistics:
    return Statistics(np.ones(1, dtype=np.uint16), np.array([sum(supports)]), np.array([supports]))


def test_one_answer_to_an_attribute_is_used_for_its_pairs() -> None:
    pairs = next(question for question in SCHEME.questions if question.axes)
    counts = {"a": statistics([1, 0, 0]), "b": statistics([0, 1]), pairs.name: statistics([9, 2, 3, 4, 1, 5])}
    known = PeriodAnswers.of(SCHEME, Final.of(SCHEME, 0, counts, NotCounted()))
    with_both = known.answers[pairs.name].fitted([known.answers["a"], known.answers["b"]])
    with_none = known.answers[pairs.name].fitted([None, None])
    published = build_histogram("final", SCHEME, 0, counts).attribute(pairs.name)
    np.testing.assert_array_equal(published.adjusted, with_both["adjusted"])
    assert not np.array_equal(with_both["adjusted"], with_none["adjusted"])
