"""Every mechanism of the catalogue, domain size and budget through the same checks."""

from typing import Any

import numpy as np
import pytest

from protocols.mechanisms import RECORDS, MatrixRound, fitting
from protocols.mechanisms.rounds import end_evidence
from tests.helpers.mechanism_checks import (
    averages_vary_as_said,
    check_mechanism,
    the_enumerated_channel_agrees,
    what_is_declared_is_spent_and_not_more,
)
from tests.helpers.surveys import of_size, scheme_with

SIZES = (2, 3, 7, 32, 100)
DRAWN_SIZES = (7, *(pytest.param(k, marks=pytest.mark.long(part="statistics")) for k in SIZES if k != 7))
ONE_BUDGETS = (0.5, 1.0, 3.0)
TWO_BUDGETS = ((1.0, 0.5), (2.0, 1.0), (4.0, 2.0))
# Places and thresholds have tests of their own.
ONE_ROUND = [r.name for r in RECORDS.values() if r.one_round is not None and not r.needs_grid and r.name != "threshold"]
TWO_ROUNDS = [record.name for record in fitting("two rounds") if record.name != "threshold"]
FAKED = [record.name for record in fitting("rs+fd")]


def plain(name: str, k: int) -> dict[str, Any]:
    held = {"parameter": min(-(-k // 4), 6)} if name == "dbitflip" else {}
    return of_size(k, mechanism=name, **held)


@pytest.mark.parametrize("k", DRAWN_SIZES)
@pytest.mark.parametrize("name", ONE_ROUND)
def test_one_round(name: str, k: int) -> None:
    for budget in ONE_BUDGETS:
        check_mechanism(scheme_with(plain(name, k), **{"eps" if RECORDS[name].fits("one-shot") else "eps_inf": budget}))


@pytest.mark.parametrize("k", DRAWN_SIZES)
@pytest.mark.parametrize("name", TWO_ROUNDS)
def test_two_rounds(name: str, k: int) -> None:
    for a, b in TWO_BUDGETS:
        check_mechanism(scheme_with(plain(name, k), eps_inf=a, eps_1=b))


@pytest.mark.parametrize("k", DRAWN_SIZES)
@pytest.mark.parametrize("budgets", [{"eps": 1.0}, {"eps_inf": 2.0, "eps_1": 1.0}], ids=["one-shot", "two rounds"])
@pytest.mark.parametrize("name", FAKED)
def test_among_fakes(name: str, budgets: dict[str, Any], k: int) -> None:
    check_mechanism(scheme_with(of_size(k, mechanism=name), of_size(4, "b"), solution="rs+fd", **budgets))
    if RECORDS[name].fits("rs+rfd"):
        rising = [2 * (i + 1) / (k * (k + 1)) for i in range(k)]
        attributes = of_size(k, mechanism=name, prior=rising), of_size(2, "b", prior=[0.2, 0.8])
        check_mechanism(scheme_with(*attributes, solution="rs+rfd", **budgets))


@pytest.mark.parametrize("name", ["l-grr", "l-osue", "l-geometric"])
def test_averaging_periods_stops_at_the_memos(name: str) -> None:
    averages_vary_as_said(scheme_with(plain(name, 7), eps_inf=2.0, eps_1=1.0))


@pytest.mark.parametrize("name", FAKED)
def test_averaging_periods_stops_at_the_memos_among_fakes(name: str) -> None:
    attributes = of_size(7, mechanism=name), of_size(4, "b")
    averages_vary_as_said(scheme_with(*attributes, solution="rs+fd", eps_inf=2.0, eps_1=1.0))


# The share of eps_1 that the printed second round of L-GRR leaves unused, for each of TWO_BUDGETS.
WASTE = {2: [0, 0, 0], 3: [0.12, 0.05, 0.01], 7: [0.40, 0.21, 0.03], 32: [0.80, 0.61, 0.16], 100: [0.93, 0.83, 0.37]}


@pytest.mark.parametrize("k", SIZES)
def test_as_published_l_grr_is_safe_and_wasteful(k: int) -> None:
    shortfall = []
    for a, b in TWO_BUDGETS:
        printed = scheme_with(plain("l-grr", k), eps_inf=a, eps_1=b, calibration="published")
        what_is_declared_is_spent_and_not_more(printed)
        the_enumerated_channel_agrees(printed)
        shortfall.append(1 - printed.guarantees.per_report.whole / b)
    assert shortfall == pytest.approx(WASTE[k], abs=0.006)


def test_the_loss_of_an_ordered_round_whose_ratios_do_not_rise_is_not_stated() -> None:
    with pytest.raises(TypeError, match="do not rise"):
        end_evidence(MatrixRound(np.array([[0.2, 0.6, 0.2], [0.4, 0.2, 0.4], [0.2, 0.6, 0.2]])), None)
