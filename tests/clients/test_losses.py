"""What devices compute that terms reveal: the same in both libraries, and no less than what the integers reveal."""

from __future__ import annotations

import json
from math import log

import pytest

from hearsay.library.device.limits import Spending
from protocols.arrays.columns import PackedBits
from protocols.mechanisms import FreshHash
from protocols.mechanisms.rounds import Flip
from protocols.randomness.sampling import Table, eight_bits
from tests.clients.cases import cases
from tests.helpers.node import LIBRARY, node


def test_javascript_devices_compute_the_losses_that_plans_show() -> None:
    named = list(cases())
    run = node(LIBRARY / "tests" / "losses.js", stdin="\n".join(scheme.terms.decode() for _, scheme in named))
    assert run.returncode == 0, run.stderr
    for (name, scheme), line in zip(named, run.stdout.splitlines(), strict=True):
        computed, planned = json.loads(line), Spending.of(scheme)
        assert computed["report"] == pytest.approx(planned.report, rel=1e-9), name
        assert computed["life"] == (None if planned.life is None else pytest.approx(planned.life, rel=1e-9)), name


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
