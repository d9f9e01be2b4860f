"""Closed-form guesses against the best guess found by looking at every output."""

from typing import Any

import numpy as np
import pytest

from protocols.mechanisms import fitting
from protocols.privacy.risk import attribute_guess, value_guess
from tests.helpers.enumeration import answers, survey_distribution
from tests.helpers.surveys import of_size, scheme_with


@pytest.mark.parametrize("name", [record.name for record in fitting("rs+fd")])
@pytest.mark.parametrize("terms", [{"eps": 1.0}, {"eps_inf": 2.0, "eps_1": 1.0}], ids=["one-shot", "two rounds"])
def test_no_guess_among_fakes_is_better_than_said(name: str, terms: dict[str, Any]) -> None:
    sizes = (2, 3, 2)
    attributes = [of_size(k, f"a{i}", mechanism=name) for i, k in enumerate(sizes)]
    scheme = scheme_with(*attributes, solution="rs+fd", **terms)
    everything = survey_distribution(scheme, 1)
    for place, question in enumerate(scheme.questions):
        others = tuple(i for i in range(3) if i != place)
        of_value = everything.mean(axis=others)  # the other attributes' values are spread evenly
        assert value_guess(question) == pytest.approx(of_value.max(axis=0).sum() / question.k)

    tables = [answers(question, 1, scheme.survey.longitudinal) for question in scheme.questions]
    for same in (False, True):
        by_sampled = []
        for sampled in range(3):
            parts = [
                (rows[0] if same else rows.mean(axis=0)) if i == sampled else fake
                for i, (rows, fake) in enumerate(tables)
            ]
            by_sampled.append(np.einsum("a,b,c->abc", *parts).ravel())
        assert attribute_guess(scheme.questions, same) == pytest.approx(np.max(by_sampled, axis=0).sum() / 3)


@pytest.mark.parametrize(
    ("names", "gives_away"),
    [
        (("grr", "grr"), True),
        (("grr", "oue-r"), True),
        (("grr", "grr-r"), True),
        (("grr-r", "grr-r"), False),
        (("sue-r", "grr-r"), False),
        (("sue-r",) * 2, False),
    ],
)
@pytest.mark.parametrize("terms", [{"eps": 1.0}, {"eps_inf": 2.0, "eps_1": 1.0}], ids=["one-shot", "two rounds"])
def test_a_prior_that_is_right_hides_the_sampled_attribute_only_where_fakes_carry_noise(
    names: tuple[str, str], gives_away: bool, terms: dict[str, Any]
) -> None:
    """Values are spread exactly like the fakes, which is the best a prior can be."""
    priors = ([0.9, 0.06, 0.04], [0.2, 0.8])
    attributes = [
        of_size(len(prior), f"a{i}", mechanism=name, prior=prior)
        for i, (prior, name) in enumerate(zip(priors, names, strict=True))
    ]
    scheme = scheme_with(*attributes, solution="rs+rfd", **terms)
    (first, fake_first), (second, fake_second) = (answers(q, 1, scheme.survey.longitudinal) for q in scheme.questions)
    assert fake_first is not None and fake_second is not None
    by_sampled = np.outer(priors[0] @ first, fake_second), np.outer(fake_first, priors[1] @ second)
    best = np.max(by_sampled, axis=0).sum() / 2
    assert attribute_guess(scheme.questions, same=False) == pytest.approx(best)
    assert (best > 0.51) == gives_away
