"""The Python device draws with the integers and bits of fleets, and computes no less than what they reveal."""

import doctest
from importlib import import_module
from math import inf, log, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hearsay_device
from hearsay_device.attributes import Grid
from hearsay_device.draws import Draws, derived
from hearsay_device.limits import Asked, cost, loss, report_loss, require_within_budgets, shared_bits
from hearsay_device.respondent import Respondent as Answering
from hearsay_device.terms import read_terms
from protocols.arrays.columns import PackedBits
from protocols.mechanisms import FreshHash
from protocols.mechanisms.rounds import Flip
from protocols.privacy.crowd import trait_values
from protocols.privacy.linking import pair_information
from protocols.randomness.keystream import Draws as FleetDraws
from protocols.randomness.keystream import Keyring
from protocols.randomness.sampling import Table, eight_bits
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import NOTHING
from tests.clients.cases import cases, table_cases
from tests.helpers.enumeration import exact
from tests.helpers.surveys import scheme_with, sets_of

KEYS = [bytes([number]) * 16 for number in range(12)]
CASES = table_cases()


@pytest.mark.parametrize("scheme", CASES.values(), ids=CASES)
def test_a_device_draws_what_a_fleet_draws_with_the_same_keys(scheme: Scheme) -> None:
    terms = read_terms(scheme.terms)
    terms.verify()
    for question, ours in zip(scheme.questions, terms.questions, strict=True):
        encoding = question.mechanism.encoding
        for number, key in enumerate(KEYS):
            value = number % question.k
            trait = encoding.traits(_fleet(key, 3)) if encoding.lifelong else None
            held = ours.trait(Draws(key, 3))
            cell = int(encoding.cells(np.array([value]), trait)[0])
            assert ours.cell(value, held) == cell
            own = number % 3 > 0 or question.fake_kind is None
            memo = _first_round(question, cell, own, _fleet(key, cell))
            answer = encoding.finish(question.mechanism.report(memo, _fleet(key[::-1], 7)), trait)
            made = ours.perturb(ours.memoise(cell, own, Draws(key, cell)), Draws(key[::-1], 7))
            assert ours.finish(made, held) == encoding.answer.to_bytes(answer).tobytes()


@pytest.mark.parametrize("scheme", [scheme for name, scheme in CASES.items() if name.startswith("sets")])
def test_a_device_draws_the_element_that_a_fleet_draws_with_the_same_key(scheme: Scheme) -> None:
    terms, question = read_terms(scheme.terms), scheme.questions[0]
    ours, key, longitudinal = terms.questions[0], KEYS[3], scheme.survey.longitudinal
    document = {"surveys": {terms.id: {"listed": False}}, "kept": {f"{ours.id} draw": key.hex()}, "keys": {}}
    device = Answering(terms, document, lambda _: bytes(32))
    asked = Asked(ours.id, [ours], not longitudinal, 1)
    fleet = Respondent(scheme, Keyring(bytes(32)))
    own = derived(KEYS[5], "draw", terms.id, terms.fingerprint, ours.name) if asked.fresh else key
    fleet.keyring.draws = lambda purpose, devices, tweak: FleetDraws(own, devices, np.zeros(1, dtype=np.int64))  # type: ignore[method-assign]
    for places in ([], [3], [9, 4, 11], [1, 2, 3, 4], list(range(0, 30, 4))):
        table = np.array([[*places, NOTHING]])
        drawn = fleet.values(question, np.zeros(1, dtype=np.uint64), {"a": table}, 0)
        cell = device.cell(asked, ours, {"a": set(places)}, KEYS[5])
        assert question.order[cell] == drawn[0]


def _fleet(key: bytes, tweak: int) -> FleetDraws:
    return FleetDraws(key, np.zeros(1, dtype=np.uint64), np.array([tweak]))


def _first_round(question: Any, cell: int, own: bool, draws: FleetDraws) -> Any:
    if question.fake_kind is None:
        return question.mechanism.memoise(np.array([cell]), draws)
    if question.fake_kind == "bare":
        noise = question.mechanism.first
        return question.mechanism.encoding.hide(np.array([cell]), np.array([own]), question.fake, noise, draws)
    drawn = question.k if question.fake is None else Table(question.fake).sample(draws.fork(2))
    return question.mechanism.memoise(np.where([own], cell, drawn), draws)


def test_a_position_at_any_distance_is_in_the_nearest_cell() -> None:
    grid = Grid({"cell": 0.001, "columns": 3, "rows": 2})
    assert [grid.cell_of({"x": x, "y": -x}, None) for x in (1e308, -1e308)] == [2, 3]


def test_examples_compute_what_they_show() -> None:
    tried = 0
    for path in Path(hearsay_device.__path__[0]).glob("[a-z]*.py"):
        found = doctest.testmod(import_module(f"hearsay_device.{path.stem}"))
        assert found.failed == 0, path.name
        tried += found.attempted
    assert tried > 3


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
                shares = exact(Table([flip.p] + [flip.q] * (symbols - 1)))
                drawn, stated = log(max(shares) / min(shares)), log(flip.p / flip.q)
            assert drawn <= stated * (1 + 1e-9), name
            checked += 1
    assert checked > 30


def _bits(flip: Flip) -> float:
    """The largest log-ratio of any byte between two values with a bit in it; both bits count."""
    table = eight_bits(flip.q, flip.p)
    none, one, other = (exact(table, kind) for kind in (0, 1, 2))
    within = max(a / b for a, b in zip(one, other, strict=True))
    ups = [a / b for a, b in zip(one, none, strict=True)]
    return log(max(within, max(ups) / min(ups)))


def test_a_set_is_any_iterable_but_a_text() -> None:
    attribute = read_terms(scheme_with(sets_of(6, 3), eps=1).terms).attributes[0]
    listed = attribute.set_of(["v1", "v3"])
    assert listed == ({1, 3}, True)
    for same in (("v1", "v3"), {"v1", "v3"}, iter(["v3", "v1"]), {"v1": 1, "v3": 2}.keys()):
        assert attribute.set_of(same) == listed
    assert attribute.set_of("v1") == ({1}, True), "a text is a value, and not its letters"
    assert attribute.set_of({"latitude": 1.0}) == (set(), False)
