"""Another question, other memos; other terms, other noise in each report (PROTOCOLS 8)."""

import json
from collections import defaultdict
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.seeded_keyrings import seeded_keyring
from protocols.arrays.columns import PackedBits
from protocols.mechanisms.lifelong import Hashed
from protocols.mechanisms.rounds import Flip
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.helpers.surveys import of_size, scheme_with

DEVICES = np.arange(20_000, dtype=np.uint64)
SIGMAS = 5.5  # of some ten thousand comparisons, none is expected to differ by as much
Symbols = NDArray[np.int64]

DATA = json.loads((Path(__file__).parent / "changed_terms.json").read_text())
KINDS: dict[str, dict[str, Any]] = DATA["kinds of survey"]
CHANGES: list[tuple[dict[str, Any], dict[str, Any]]] = [(KINDS[kind], change) for kind, change in DATA["other noise"]]


def scheme(terms: dict[str, Any]) -> Scheme:
    given = dict(terms)
    return scheme_with(*given.pop("attributes"), **given)


def drawn(scheme: Scheme) -> dict[str, Symbols]:
    """Everything the devices draw with one secret, as columns of symbols, by what it is."""
    people, survey = Respondent(scheme, seeded_keyring(1)), scheme.survey
    tokens = people.tokens(DEVICES, 3)
    columns: dict[str, Symbols] = {"token": (tokens[:, None] >> np.arange(0, 64, 8, dtype=np.uint64) & np.uint64(255))}
    if scheme.sampling:
        columns["sampled"] = people.sampled(DEVICES)
    if scheme.takes_turns:
        columns["place"] = people.places(DEVICES)
    for question in scheme.questions:
        mechanism, cells = question.mechanism, np.ones(len(DEVICES), dtype=np.int64)
        if not survey.longitudinal:
            columns[f"{question.name} once"] = _symbols(people.answer_once(question, DEVICES, 3, cells), mechanism)
            continue
        memo = people.memoise(question, DEVICES, cells)
        columns[f"{question.name} memo"] = _unpacked(mechanism.encoding.memo, memo)
        if question.record.lifelong:  # which cell every value is in shows the whole trait
            columns[f"{question.name} trait"] = np.stack(
                [people.cells(question, DEVICES, np.full(len(DEVICES), value)) for value in range(question.k)], axis=1
            )
        if mechanism.second is not None:  # over one memo for all, only the second round differs between devices
            one = np.repeat(memo[:1], len(DEVICES), axis=0)
            draws = _symbols(people.report(question, DEVICES, 3, one), mechanism)
            if isinstance(mechanism.encoding, Hashed):
                draws %= mechanism.encoding.g  # without the hash, which is for life
            columns[f"{question.name} second round"] = draws
        columns[f"{question.name} answer"] = _symbols(people.answers(question, DEVICES, 3, cells), mechanism)
    return {what: np.asarray(column, dtype=np.int64).reshape(len(DEVICES), -1) for what, column in columns.items()}


def _symbols(answers: Any, mechanism: Any) -> Symbols:
    return _unpacked(mechanism.encoding.answer, answers)


def _unpacked(layout: Any, column: Any) -> Symbols:
    return np.asarray(layout.unpack(column) if isinstance(layout, PackedBits) else column, dtype=np.int64)


def dependence(one: Symbols, other: Symbols) -> float:
    """How far two columns are from independent, in standard deviations: by how often they agree, and by correlation."""
    n = len(one)
    size = max(one.max(), other.max()) + 1
    chance = float(np.bincount(one, minlength=size) / n @ (np.bincount(other, minlength=size) / n))
    if min(one.std(), other.std()) == 0:
        return 0.0  # the same on all devices, such as a bit that no device holds
    agreement = (np.mean(one == other) - chance) / sqrt(max(chance * (1 - chance), 1 / n) / n)
    correlation = float(np.corrcoef(one, other)[0, 1]) * sqrt(n)
    return max(abs(float(agreement)), abs(correlation))


def dependences(mine: dict[str, Symbols], theirs: dict[str, Symbols]) -> dict[str, float]:
    """For everything that both surveys draw: the strongest dependence of any of its columns."""
    return {
        what: max(dependence(a, b) for a, b in zip(mine[what].T, theirs[what].T, strict=True))
        for what in mine.keys() & theirs.keys()
    }


def shared(one: Scheme, other: Scheme) -> set[str]:
    """What both draw alike, because they ask the same."""
    alike = {name for name, known in one.memo_ids.items() if other.memo_ids.get(name) == known}
    whole = {"sampled"} if one.sampled_id == other.sampled_id else set()
    turns = {"place"} if one.turn_id == other.turn_id else set()
    return whole | turns | {f"{name} {what}" for name in alike for what in ("memo", "trait")}


@pytest.mark.parametrize(("terms", "change"), CHANGES, ids=[str(list(change)) for _, change in CHANGES])
def test_one_changed_term_makes_all_draws_independent_but_those_of_the_same_question(
    terms: dict[str, Any], change: dict[str, Any]
) -> None:
    one, other = scheme(terms), scheme(terms | change)
    mine, theirs, same = drawn(one), drawn(other), shared(one, other)
    assert all((mine[what] == theirs[what]).all() for what in same & mine.keys() & theirs.keys())
    same |= {what.replace("memo", "answer") for what in same}  # made from the same memo
    found = {what: sigmas for what, sigmas in dependences(mine, theirs).items() if what not in same}
    assert "token" in found
    assert {what: sigmas for what, sigmas in found.items() if sigmas > SIGMAS} == {}


def test_what_no_round_1_depends_on_leaves_memos_as_they_are() -> None:
    kept = [
        set(change)
        for terms, change in CHANGES
        if "eps_inf" in terms and any("memo" in what for what in shared(scheme(terms), scheme(terms | change)))
    ]
    assert kept == [{"eps_1"}, {"horizon"}, {"memo_cap"}, {"minimum"}, {"solution", "eps_inf", "eps_1"}, {"start"},
                    {"calibration"}, {"attributes"}, {"clock"}]  # fmt: skip


@pytest.mark.parametrize("terms", KINDS.values(), ids=KINDS)
def test_the_comparison_would_see_noise_that_is_keyed_by_the_id_alone(
    terms: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scheme, "fingerprint", "the same for all terms")
    found = dependences(drawn(scheme(terms)), drawn(scheme(terms | {"horizon": 7})))
    assert min(found.values()) > 50, found


def memos(eps_inf: float, k: int, values: Symbols) -> tuple[Symbols, Flip]:
    """The memos of devices with these values, in the survey of one id and secret, and the noise they have."""
    compiled = scheme_with(of_size(k, mechanism="grr"), eps_inf=eps_inf)
    (question,) = compiled.questions
    noise = question.mechanism.first
    assert isinstance(noise, Flip)
    return Respondent(compiled, seeded_keyring(1)).memoise(question, DEVICES, values).astype(np.int64), noise


def truth_where_memos_differ(k: int) -> tuple[float, float, int]:
    """Of devices with different memos at eps_inf 1 and 2: how many have the truth in the second one.

    Returns the share, what it is if the memos are independent, and the number of these devices.
    """
    values = np.random.default_rng(k).integers(0, k, len(DEVICES))
    (weak, weaker), (strong, stronger) = memos(1.0, k, values), memos(2.0, k, values)
    differ = weak != strong
    expected = stronger.p * (1 - weaker.p) / (1 - weaker.p * stronger.p - (k - 1) * weaker.q * stronger.q)
    return float(np.mean(strong[differ] == values[differ])), expected, int(differ.sum())


@pytest.mark.parametrize("k", [2, 4, 10])
def test_two_budgets_under_one_id_show_no_more_than_two_surveys(k: int) -> None:
    """The attack on noise that is keyed by a name: two memos that differ, of which the second is the truth."""
    share, expected, n = truth_where_memos_differ(k)
    assert expected < 0.8
    assert abs(share - expected) < SIGMAS * sqrt(expected * (1 - expected) / n)


def test_with_a_name_alone_the_attack_would_find_every_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scheme, "memo_ids", defaultdict(lambda: "the same for all questions"))
    share, _, n = truth_where_memos_differ(2)
    assert share == 1 and n > 0.1 * len(DEVICES)
