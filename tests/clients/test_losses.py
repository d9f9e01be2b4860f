"""What devices compute that terms reveal: no less than what the integers do. Vectors fix it for all libraries."""

from math import inf, log, log2

import pytest

from hearsay_device.limits import cost, loss, report_loss, require_within_budgets, shared_bits
from hearsay_device.terms import read_terms
from protocols.arrays.columns import PackedBits
from protocols.mechanisms import FreshHash
from protocols.mechanisms.rounds import Flip
from protocols.privacy.crowd import trait_values
from protocols.privacy.linking import pair_information
from protocols.randomness.sampling import Table, eight_bits
from tests.clients.cases import cases


def test_devices_compute_the_losses_that_plans_show() -> None:
    for name, scheme in cases():
        terms, promise = read_terms(scheme.terms), scheme.guarantees
        assert report_loss(terms) == pytest.approx(promise.per_report.whole, rel=1e-9), name
        require_within_budgets(terms)
        if promise.renaming is None:
            continue
        costs = [cost(each, cells) for each, cells in zip(terms.questions, promise.values, strict=True)]
        assert promise.renaming.whole == pytest.approx((sum if terms.solution == "spl" else max)(costs), rel=1e-9), name
        ever = [loss(each, inf) for each in terms.questions]
        assert max(ever) == pytest.approx(max(promise.per_attribute(inf)) if not terms.hides else max(ever)), name


def test_devices_see_the_bits_that_link_two_answers() -> None:
    """Of two surveys with the same rounds: what plans say of two reports of one survey, or more."""
    compared = 0
    for name, scheme in cases():
        if not scheme.survey.longitudinal:
            continue
        for each, ours in zip(scheme.questions, read_terms(scheme.terms).questions, strict=True):
            known = pair_information(each) + log2(trait_values(each))
            assert shared_bits(ours, ours) >= known * (1 - 1e-9), name
            compared += ours.kind == "direct" and shared_bits(ours, ours) == pytest.approx(known)
    assert compared > 5


def test_the_integers_reveal_no_more_than_the_numbers_they_follow_from() -> None:
    """Round 1 of every case: the exact probabilities that devices draw with, as fractions."""
    checked = 0
    for name, scheme in cases():
        for question in scheme.questions:
            flip, encoding = question.mechanism.first, question.mechanism.encoding
            memo = encoding.memo
            if not isinstance(flip, Flip):
                continue
            if isinstance(memo, PackedBits):
                drawn = _bits(flip)
                stated = log(flip.p * (1 - flip.q) / (flip.q * (1 - flip.p)))
            else:
                symbols = encoding.g if isinstance(encoding, FreshHash) else memo.count  # a hash has no noise
                shares = Table([flip.p] + [flip.q] * (symbols - 1)).exact()
                drawn, stated = log(max(shares) / min(shares)), log(flip.p / flip.q)
            assert drawn <= stated * (1 + 1e-9), name
            checked += 1
    assert checked > 30


def _bits(flip: Flip) -> float:
    """The largest log-ratio of any byte between two values with a bit in it; both bits count."""
    table = eight_bits(flip.q, flip.p)
    none, one, other = (table.exact(kind) for kind in (0, 1, 2))
    within = max(a / b for a, b in zip(one, other, strict=True))
    ups = [a / b for a, b in zip(one, none, strict=True)]
    return log(max(within, max(ups) / min(ups)))
