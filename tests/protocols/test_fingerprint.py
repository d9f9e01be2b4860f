"""The fingerprint covers terms, mechanisms and integers of tables; other terms have other memos or other noise."""

import importlib
import json
from collections.abc import Callable, Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.seeded_keyrings import seeded_keyring
from protocols.arrays.columns import PackedBits
from protocols.mechanisms import RECORDS
from protocols.mechanisms.catalogue import build
from protocols.mechanisms.lifelong import Hashed
from protocols.mechanisms.record import USES, Use
from protocols.mechanisms.rounds import MatrixRound
from protocols.randomness.sampling import Table, digest
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.clients.cases import BUDGETS
from tests.helpers.another_release import never_choose
from tests.helpers.surveys import of_size, scheme_with
from tests.protocols.test_survey import PRIORS, load

CHANGED = json.loads((Path(__file__).parent / "changed_terms.json").read_text())


def fingerprint(change: dict[str, Any]) -> str:
    return Scheme(load(change)).fingerprint


def test_the_fingerprint_never_changes_by_itself() -> None:
    """If this fails, reports in flight and devices' memos are refused: raise TERMS_VERSION, and only on purpose."""
    assert fingerprint({}) == "639507f05b7aef8e18bf0b820c6a2361"


@pytest.mark.parametrize("change", CHANGED["same fingerprint"])
def test_words_and_ways_of_writing_do_not_change_the_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint(change) == fingerprint({})


def test_every_term_changes_the_fingerprint() -> None:
    fingerprints = [fingerprint(change) for change in ({}, *CHANGED["other fingerprints"])]
    assert len(set(fingerprints)) == len(fingerprints)


def test_a_value_called_title_is_a_term() -> None:
    shares = [{"title": 0.5, "groups": 0.5}, {"title": 0.25, "groups": 0.75}]
    attributes = [[PRIORS["attributes"][1], {"name": "a", "values": list(share), "prior": share}] for share in shares]
    one, other = (fingerprint({"solution": "rs+rfd", "attributes": each}) for each in attributes)
    assert one != other


@pytest.fixture
def rebuilt() -> Iterator[None]:
    """Mechanisms are built anew for the test, and again after it."""
    build.cache_clear()
    yield
    build.cache_clear()


def test_another_choice_for_the_same_file_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Scheme(load({}))
    never_choose(monkeypatch, before.questions[0].label)
    after = Scheme(load({}))
    assert after.survey == before.survey and after.questions[0].label != before.questions[0].label
    assert after.fingerprint != before.fingerprint


LIBRARY_FUNCTIONS = {
    "protocols.mechanisms.rounds": ("log", "log1p"),
    "protocols.privacy.linked": ("log",),
    "protocols.privacy.hidden": ("log", "exp", "log1p", "expm1"),
}


@pytest.mark.usefixtures("rebuilt")
@pytest.mark.parametrize("guarantee", ["tuple", "attribute", "published"])
def test_a_machine_whose_logarithms_differ_in_the_last_bit_has_the_same_fingerprint(
    monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    """C libraries and processors round exponentials and logarithms differently; the tables must not show it."""
    lone = [{"eps_inf": 2.0, "eps_1": 0.6}, {"eps_inf": 2.0}, {"eps": 1.0}]
    mechanisms = [
        (name, budgets)
        for use, budgets in zip(("two rounds", "memo only", "one-shot"), lone, strict=True)
        for name in RECORDS
        if RECORDS[name].fits(use) and not RECORDS[name].needs_grid  # type: ignore[arg-type]
    ]

    def fingerprints() -> list[str]:
        build.cache_clear()
        alone = [scheme_with(of_size(20, "a", mechanism=name), **budgets) for name, budgets in mechanisms]
        hidden = [
            scheme_with(of_size(5, "a"), of_size(7, "b"), **budgets, solution="rs+fd", guarantee=guarantee)
            for budgets in lone
        ]
        grid = {"at": [47, 6], "cell": 500, "columns": 9, "rows": 7}
        places = scheme_with({"name": "a", "grid": grid, "geo": {"level": 1, "radius": 700}})
        return [scheme.fingerprint for scheme in (*alone, *hidden, places)]

    before = fingerprints()
    for module, names in LIBRARY_FUNCTIONS.items():
        for name in names:
            function = getattr(importlib.import_module(module), name)
            monkeypatch.setattr(f"{module}.{name}", _rounded_up(function))
    for name in ("exp", "log", "logaddexp"):
        monkeypatch.setattr(np, name, _rounded_up(getattr(np, name)))
    assert fingerprints() == before


def _rounded_up(function: Callable[..., Any]) -> Callable[..., Any]:
    def rounded(*arguments: Any) -> Any:
        up = np.nextafter(function(*arguments), np.inf)
        return up if isinstance(up, np.ndarray) else float(up)

    return rounded


CASES = [(use, name) for use in USES for name in RECORDS if RECORDS[name].fits(use) and not RECORDS[name].needs_grid]


@pytest.mark.parametrize(("use", "name"), CASES)
def test_whatever_is_drawn_with_is_in_the_tables_and_nothing_else_is(
    use: Use, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failure would look like: a table that may differ between two releases under one fingerprint."""
    shares = {"prior": [0.1, 0.2, 0.3, 0.4]} if use == "rs+rfd" else {}
    attributes = [of_size(4, attribute, mechanism=name, **shares) for attribute in ("a", "b")]
    scheme = scheme_with(*attributes, **BUDGETS[use])
    sampled: set[str] = set()
    for sampler in (Table, MatrixRound):
        monkeypatch.setattr(sampler, "sample", _noting(sampler.sample, sampled))
    respondent, devices = Respondent(scheme, seeded_keyring(1)), np.arange(50, dtype=np.uint64)
    question = scheme.questions[0]
    respondent.answers(question, devices, 0, np.arange(50) % 4)
    listed = {each for tables in question.tables.values() for each in tables}
    if name == "loloha":
        listed.remove(question.tables["traits"][1])  # the hashes themselves, of which one is drawn
    if name in ("dbitflip", "threshold"):
        listed.remove(question.tables["traits"][0])  # drawn below, without a table
    if question.faked:
        listed.add(digest(Table([1.0] * 2).integers))  # which attribute is the device's own
    assert sampled == listed


def _noting(sample: Any, into: set[str]) -> Any:
    def noted(self: Table | MatrixRound, *arguments: Any, **options: Any) -> Any:
        into.add(digest(self.integers if isinstance(self, Table) else self.table))
        return sample(self, *arguments, **options)

    return noted


DEVICES = np.arange(20_000, dtype=np.uint64)
SIGMAS = 5.5  # of some ten thousand comparisons, none is expected to differ by as much
Symbols = NDArray[np.int64]

KINDS: dict[str, dict[str, Any]] = CHANGED["kinds of survey"]
CHANGES = [(KINDS[kind], change) for kind, change in CHANGED["other noise"]]


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
        answer = mechanism.encoding.answer
        if not survey.longitudinal:
            columns[f"{question.name} once"] = _unpacked(answer, people.answer_once(question, DEVICES, 3, cells))
            continue
        memo = people.memoise(question, DEVICES, cells)
        columns[f"{question.name} memo"] = _unpacked(mechanism.encoding.memo, memo)
        if question.record.lifelong:  # which cell every value is in shows the whole trait
            columns[f"{question.name} trait"] = np.stack(
                [people.cells(question, DEVICES, np.full(len(DEVICES), value)) for value in range(question.k)], axis=1
            )
        if mechanism.second is not None:  # over one memo for all, only the second round differs between devices
            one = np.repeat(memo[:1], len(DEVICES), axis=0)
            draws = _unpacked(answer, people.report(question, DEVICES, 3, one))
            if isinstance(mechanism.encoding, Hashed):
                draws %= mechanism.encoding.g  # without the hash, which is for life
            columns[f"{question.name} second round"] = draws
        columns[f"{question.name} answer"] = _unpacked(answer, people.answers(question, DEVICES, 3, cells))
    return {what: np.asarray(column, dtype=np.int64).reshape(len(DEVICES), -1) for what, column in columns.items()}


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
    """Also memos of two budgets under one id: where they differ, the second one says no more than it does alone."""
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
