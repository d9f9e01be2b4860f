"""Finding people in another table: the likelihood attack, and the published one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hearsay.terminal.console import no_step
from lab.attacks.reidentify import (
    Search,
    Seen,
    guessed,
    own_respondent,
    rank,
    seen_by_smp,
    seen_of_tuples,
    without_noise,
)
from lab.attacks.trials import Trials, effective
from lab.audit.report import Attacker
from lab.seeded_keyrings import seeded_keyring
from protocols.respondent import Respondent
from tests.helpers.surveys import of_size, scheme_with

SIZES = (5, 8, 3, 6, 4, 7)
NAMES = [f"a{i}" for i in range(len(SIZES))]


def people(n: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: random.integers(k, size=n) for name, k in zip(NAMES, SIZES, strict=True)}


def survey(mechanism: str = "grr", solution: str = "smp", **terms: Any) -> Any:
    attributes = [of_size(k, name, mechanism=mechanism) for name, k in zip(NAMES, SIZES, strict=True)]
    return scheme_with(*attributes, solution=solution, **(terms or {"eps": 4.0}))


def hits(scheme: Any, attacker: Attacker = "published", targets: int = 1000) -> list[float]:
    """How often the first record is the right one, if all columns are known: of the best attacker, and beside it."""
    table = people(2000)
    search = Search(scheme.survey, table, table, attacker, 0.01, 1, targets)
    figures, findings = search.run(seeded_keyring(3), no_step)
    each = 2 if attacker == "published" else 1
    assert len(figures) == each * (8 if scheme.survey.solution == "smp" else 4), "first 1 and 10; all columns, and some"
    assert {finding.code for finding in findings} == {"anonymity-sets"}
    assert ["published" in figure.knows for figure in figures[: 2 * each]] == [False, False, True, True][: 2 * each]
    assert all(figure.trials == targets for figure in figures)
    return [figure.measured or 0.0 for figure in figures[: 2 * each : 2]]


def test_the_runs_of_an_audit_have_memos_of_their_own() -> None:
    """A failure would be runs that repeat the noise of the first one: more of them would say nothing more."""
    asked, devices = survey(eps_inf=1.0), np.arange(1000, dtype=np.uint64)
    question = asked.questions[0]
    one, other = (
        own_respondent(asked.survey, name, seeded_keyring(3)).memoise(question, devices, np.zeros(1000, dtype=np.int64))
        for name in ("audit.1", "audit.2")
    )
    assert (one != other).any()


@pytest.mark.long(part="statistics")
def test_for_direct_answers_counting_equal_values_is_the_best_attack() -> None:
    best, published = hits(survey("grr"))
    assert best == pytest.approx(published, abs=0.02)
    assert best > 20 / 2000, "ten times luck"


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("mechanism", ["oue", "sue"])
def test_for_bits_likelihoods_find_more_than_counting(mechanism: str) -> None:
    best, published = hits(survey(mechanism))
    assert best >= published - 2 * (published / 1000) ** 0.5
    assert best > 1.2 * published


@pytest.mark.long(part="statistics")
def test_among_fakes_no_attribute_needs_to_be_guessed() -> None:
    best, published = hits(survey("grr", "rs+fd", eps=6.0))
    assert best >= published - 2 * (published / 1000) ** 0.5


def test_the_published_attacker_finds_the_true_attribute_by_estimated_shares() -> None:
    """Control: if values are thought to be even, all attributes look alike, and the guess is a coin."""
    scheme, random = survey("grr", "rs+fd", eps=6.0), np.random.default_rng(5)
    devices = np.arange(4000, dtype=np.uint64)
    skewed = {name: random.binomial(k - 1, 0.1, size=4000) for name, k in zip(NAMES, SIZES, strict=True)}
    search = Search(scheme.survey, skewed, skewed, "published", 0.01, 1)
    respondent = Respondent(scheme, seeded_keyring(1))
    seen = seen_of_tuples(respondent, 0, devices, skewed)

    def right(parts: list[Seen]) -> float:
        used = np.array([part.scores.any(axis=1) for part in guessed(parts, random)])
        assert (used.sum(axis=0) == 1).all(), "one answer of a report is used"
        return float((used.argmax(axis=0) == respondent.sampled(devices)).mean())

    even = right([replace(part, shares=np.full(k, 1 / k)) for part, k in zip(seen, SIZES, strict=True)])
    assert even == pytest.approx(1 / 6, abs=0.03)
    assert right([replace(part, shares=search.estimated_shares(respondent, part.name)) for part in seen]) > even + 0.1


def test_split_budgets_and_memos_are_attacked_too() -> None:
    (whole,) = hits(survey("l-grr", "spl", eps_inf=24.0, eps_1=12.0), "best", targets=200)
    assert whole > 5 / 2000


def test_without_noise_everybody_who_is_unique_is_found() -> None:
    scheme = survey("grr", eps=20.0)
    table, devices = people(3000), np.arange(300, dtype=np.uint64)
    targets = {name: column[:300] for name, column in table.items()}
    respondent = Respondent(scheme, seeded_keyring(0))
    every = np.repeat(np.arange(6)[:, None], 300, axis=1)  # one attribute after the other
    seen = seen_by_smp(respondent, every, devices, targets)
    hits, _ = rank(seen, targets, table, NAMES)
    assert hits[1].share == pytest.approx(without_noise(targets, table, NAMES, 1), abs=0.01)
    assert hits[10].share == 1.0
    assert rank(seen, targets, table, NAMES[:2])[0][1].share == pytest.approx(
        without_noise(targets, table, NAMES[:2], 1), abs=1e-3
    )
    assert rank(guessed(seen, np.random.default_rng(0)), targets, table, NAMES)[0][10].share == 1.0


def test_as_many_people_are_looked_for_as_are_asked_for_and_none_that_the_background_lacks_is_found() -> None:
    zeros, strangers = {"a0": np.zeros(10, dtype=int)}, {"a0": np.ones(5, dtype=int)}
    assert rank([], strangers, zeros, ["a0"])[0][10].right == 0
    table = people(500)
    search = Search(survey().survey, table, table, "best", 0.01, 1, targets=23, surveys=2)
    assert {(figure.trials, figure.reports) for figure in search.run(seeded_keyring(3), no_step)[0]} == {(23, 2)}


def test_intervals_hold_the_mean_of_runs_whose_chances_differ() -> None:
    """Control: intervals of all trials together, as if they were independent, miss it far too often."""
    random, held, pooled = np.random.default_rng(2), 0, 0
    for _ in range(400):
        runs = [Trials(float(random.binomial(100, chance)), 100) for chance in random.beta(4, 12, size=10)]
        for trials, counts in ((effective(runs, 0.05), True), (sum(runs, Trials()), False)):
            low, high = trials.interval(0.05)
            held, pooled = held + (counts and low <= 0.25 <= high), pooled + (not counts and low <= 0.25 <= high)
    assert pooled < 0.8 * 400 and held > 0.92 * 400
