"""Losses proven with coins: never above the truth for honest devices, and above the claim for every broken one."""

from math import exp, log
from typing import Any

import numpy as np
import pytest

from lab.attacks.coins import smallest_violation
from tests.helpers.surveys import of_size, scheme_with
from tests.lab.observing import ALPHA, BROKEN, MECHANISMS, TWO_ROUNDS, asked, proven


@pytest.mark.parametrize(("t", "expected"), [(1, 0.947), (2, 1.549), (3, 1.768), (5, 1.847), (10, 1.913)])
def test_linked_reports_prove_nearly_all_of_the_loss(t: int, expected: float) -> None:
    """With 20,000 devices; the exact losses are 1, 1.642, 1.899, 1.994 and 2.000."""
    scheme = asked("l-osue", 10, **TWO_ROUNDS)
    found = [proven(scheme, 20_000, t, seed=seed) for seed in (1, 2, 3)]
    assert np.mean(found) == pytest.approx(expected, abs=3 * 0.05 / 3**0.5)
    assert max(found) <= (scheme.guarantees.constant(t).whole or 0)


@pytest.mark.parametrize(("name", "terms"), MECHANISMS)
def test_no_honest_mechanism_is_refuted_and_most_of_its_loss_is_seen(name: str, terms: dict[str, Any]) -> None:
    scheme = asked(name, 4, **terms)
    for t in (1, 4):
        found, promise = proven(scheme, 4000, t), scheme.guarantees.constant(t).whole
        assert promise is not None and found <= promise
        assert found > 0.4 * min(promise, 3.0), "the attack is too weak"


@pytest.mark.parametrize("solution", ["spl", "smp", "rs+fd"])
def test_tuples_of_every_solution_keep_their_promise(solution: str) -> None:
    scheme = scheme_with(of_size(3), of_size(4, "b"), solution=solution, **TWO_ROUNDS)
    for t in (1, 5):
        found = proven(scheme, 6000, t)
        assert 0.3 < found <= (scheme.guarantees.constant(t).whole or 0)


def test_turns_cover_as_many_periods_as_they_promise() -> None:
    scheme = scheme_with(of_size(4, mechanism="grr"), eps=1.0, one_in=3)
    for t, promise in ((1, 1.0), (3, 1.0), (6, 2.0)):
        assert scheme.guarantees.constant(t).whole == pytest.approx(promise)
        assert 0.5 * promise < proven(scheme, 9000, t) <= promise


@pytest.mark.long(part="statistics")
def test_false_alarms_are_as_rare_as_alpha_says() -> None:
    """A thousand audits of honest devices. A bound above the exact loss is a false alarm."""
    scheme = asked("grr", 3, eps=1.0)
    alarms = sum(proven(scheme, 400, 1, seed=run, alpha=0.05) > 1.0 for run in range(1000))
    assert alarms <= 0.05 * 1000 + 3 * (0.05 * 0.95 * 1000) ** 0.5
    assert alarms > 5, "the bound is not tight"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long(part="statistics")] * ("RS+FD" in name)) for name in BROKEN]
)
def test_broken_devices_are_refuted(name: str) -> None:
    found, promise = BROKEN[name](ALPHA)
    assert found > promise


def test_the_power_of_an_audit_is_stated() -> None:
    seen = smallest_violation(1.0, 10_000, ALPHA)
    p, q = (1 / (1 + exp(-eps)) for eps in (seen or 0.0, 1.0))
    assert 10_000 * (p * log(p / q) + (1 - p) * log((1 - p) / (1 - q))) == pytest.approx(log(1 / ALPHA), rel=1e-3)
    assert smallest_violation(1.0, 0, ALPHA) is None
