"""Attacks carried out on devices: as good as computed, and a client that does something else is found."""

from typing import Any

import numpy as np
import pytest

from hearsay.terminal.console import no_step
from lab.attacks.accuracy import guess
from lab.attacks.coins import experiments
from lab.attacks.guessing import Population
from lab.attacks.linking import link_figures
from lab.attacks.reidentify import Search, guessed, own_respondent, rank, seen_by_smp, seen_of_tuples, without_noise
from lab.attacks.report import ATTACKS, Attacker, Figure, Trials, defects, effective
from lab.seeded_keyrings import seeded_keyring
from protocols.arrays import PackedBits
from protocols.mechanisms import Use, fitting
from protocols.privacy import first_guess
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import NOTHING
from protocols.survey.sets import with_paddings
from tests.helpers.surveys import of_size, scheme_with, sets_of
from tests.lab.observing import USES, Answer, honest, observe, of_any_kind, partly_bare, tossed, with_coins

ALPHA = 0.001
ALL_USES: dict[Use, dict[str, Any]] = {
    **USES,
    "rs+fd": {"eps_inf": 2.0, "eps_1": 1.0, "solution": "rs+fd"},
    "rs+rfd": {"eps": 2.0, "solution": "rs+rfd"},
}


def skewed(scheme: Scheme, n: int, periods: int, seed: int = 0) -> dict[str, Any]:
    """Values that never change, the first the commonest."""
    random, values = np.random.default_rng(seed), {}
    for question in scheme.questions:
        shares = 1 / np.arange(1, question.k + 1)
        values[question.name] = np.tile(random.choice(question.k, n, p=shares / shares.sum()), (periods, 1))
    return values


def measured(
    scheme: Scheme, n: int, periods: int, answer: Answer = honest, published: bool = False, attacker: Attacker = "best"
) -> list[Figure]:
    seen = Population(scheme, ATTACKS, None if published else {}, ALPHA, attacker)
    for block in range(2):
        seen.add(observe(scheme, skewed(scheme, n // 2, periods, block), answer, block))
    return seen.figures()


def linked(scheme: Scheme, first: Any, second: Any) -> Figure:
    """How often devices with these values in two periods are recognised."""
    (figure,) = link_figures(observe(scheme, {"a": np.array([first, second])}), ALPHA)
    return figure


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("solution", ["smp", "spl", "rs+fd", "rs+rfd"])
@pytest.mark.parametrize("published", [False, True], ids=["even shares", "published shares"])
def test_every_solution_is_attacked_and_nothing_contradicts_what_is_computed(solution: str, published: bool) -> None:
    prior = {"prior": [0.5, 0.3, 0.2]} if solution == "rs+rfd" else {}
    attributes = of_size(3, **prior), of_size(3, "b", **prior)
    scheme = scheme_with(*attributes, solution=solution, eps_inf=2.0, eps_1=1.0)
    figures = measured(scheme, 8000, 3, published=published)
    assert defects(figures, ALPHA) == []
    attacks = {figure.attack for figure in figures}
    assert attacks == {"guess", "link", "forge"} | ({"which"} if solution.startswith("rs") else set())
    for figure in figures:
        if figure.attack == "forge":
            assert figure.measured == pytest.approx(figure.best, abs=0.03)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("use", ALL_USES)
def test_every_mechanism_is_attacked_without_contradiction(use: Use) -> None:
    values = {name: np.tile(np.random.default_rng(1).integers(3, size=600), (3, 1)) for name in "ab"}
    for solution in ("smp", "spl") if not use.startswith("rs") else (use,):
        for record in (record for record in fitting(use) if record.name != "threshold"):
            extra: dict[str, Any] = {"prior": [0.5, 0.3, 0.2]} if use == "rs+rfd" else {}
            attributes = [of_size(3, name, mechanism=record.name, **extra) for name in "ab"]
            scheme = scheme_with(*attributes, **{**ALL_USES[use], "solution": solution})
            seen = Population(scheme, ATTACKS, None, ALPHA, "published")
            seen.add(observe(scheme, values))
            figures = seen.figures()
            for number, experiment in enumerate(experiments(scheme, 3)):
                shown = tossed(600, number)
                experiment.add(with_coins(scheme, experiment.coins, shown, 3), shown)
                figures += experiment.figures(ALPHA / 2)
            assert defects(figures, ALPHA) == [], record.name


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("name", ["grr", "oue-z", "oue-r"])
def test_who_knows_what_published_attackers_know_finds_the_true_attribute_less_often(name: str) -> None:
    attributes = [of_size(k, f"a{i}", mechanism=name) for i, k in enumerate((5, 9, 4))]
    scheme = scheme_with(*attributes, solution="rs+fd", eps=2.0)
    figures = [figure for figure in measured(scheme, 10_000, 1, attacker="published") if figure.attack == "which"]
    best, _, *weaker = sorted(figures, key=lambda figure: "same knowledge" in figure.knows)
    assert len(weaker) == 2
    for figure in weaker:
        assert figure.measured is not None and best.measured is not None and figure.luck is not None
        assert figure.luck - 0.02 < figure.measured < best.measured + 0.01


@pytest.mark.parametrize("solution", ["smp", "spl", "rs+fd"])
def test_devices_that_take_turns_are_attacked_where_they_answer(solution: str) -> None:
    scheme = scheme_with(of_size(4), of_size(4, "b"), solution=solution, eps=2.0, one_in=3)
    figures = measured(scheme, 9000, 4)
    assert defects(figures, ALPHA) == []
    one, four = (next(f for f in figures if f.attack == "guess" and f.reports == t) for t in (1, 4))
    assert one.measured and four.measured and one.best and four.best and one.luck
    assert one.luck < one.measured < four.measured
    assert one.best == pytest.approx((guess(scheme.questions[0], 1, memoised=False) or 0) / 3 + 2 / 3 * one.luck)
    links = [f for f in figures if f.attack == "link" and f.measured is not None]
    assert links and all(1 / (f.luck or 1) < 9000 / 2 / 2.5 for f in links), "a third of a block answers in a period"


@pytest.mark.parametrize("terms", [USES["one-shot"], USES["two rounds"]], ids=["one-shot", "two rounds"])
@pytest.mark.parametrize("slots", [None, 1, 4])
def test_values_of_sets_and_numbers_are_guessed_as_often_as_computed(slots: int | None, terms: dict[str, Any]) -> None:
    """Sets of up to three of twelve values, or numbers of which the small ones are the commonest."""
    n, random, names = 20_000, np.random.default_rng(2), {"grr", "l-grr", "threshold"}
    number = {"name": "a", "range": {"last": 20}, "mechanism": "threshold", "parameter": slots}
    scheme = scheme_with(sets_of(12, 3, mechanism="auto") if slots is None else number, **terms)
    values = random.geometric(0.2, n).clip(1, 21) - 1
    if slots is None:
        chosen = random.random((n, 12)).argsort(axis=1)[:, :3]
        values = with_paddings(np.where(np.arange(3) < random.integers(4, size=(n, 1)), chosen, NOTHING), 12, 3)[:, :3]
    for answer, right in ((of_any_kind, True), (partly_bare, False)):
        seen = Population(scheme, ["guess"], {}, ALPHA)
        seen.add(observe(scheme, {scheme.questions[0].name: np.stack([values] * 3)}, answer))
        one, three = figures = seen.figures()
        assert scheme.questions[0].label in names and (defects(figures, ALPHA) == []) is right
        assert one.luck and one.measured and one.best and three.measured and one.luck < one.measured
        if right and (slots or "eps_inf" in terms):  # what sets draw anew in each report has no closed form
            assert three.best and three.exact and one.best < three.best and one.measured < three.measured


def swapped(respondent: Respondent, question: Question, devices: Any, period: int, values: Any) -> Any:
    """Packs bits from the other end of each byte."""
    layout = question.mechanism.encoding.answer
    assert isinstance(layout, PackedBits)
    return layout.pack(layout.unpack(honest(respondent, question, devices, period, values))[:, ::-1])


def test_a_client_with_swapped_bits_is_found() -> None:
    scheme = scheme_with(of_size(8, mechanism="l-osue"), eps_inf=2.0, eps_1=1.0)
    assert defects(measured(scheme, 4000, 2), ALPHA) == []
    found = defects(measured(scheme, 4000, 2, swapped), ALPHA)
    assert {finding.code for finding in found} == {"not-as-computed"} and all(finding.defect for finding in found)


@pytest.mark.parametrize(
    ("mechanism", "k", "expected"), [("l-osue", 100, 0.084), ("l-osue", 360, 0.57), ("l-grr", 100, 0.004)]
)
def test_devices_are_recognised_by_their_answers_as_often_as_computed(mechanism: str, k: int, expected: float) -> None:
    scheme, values = scheme_with(of_size(k, mechanism=mechanism), eps_inf=2.0, eps_1=1.0), np.arange(2000) % k
    figure = linked(scheme, values, values)
    assert figure.measured == pytest.approx(expected, abs=0.04)
    assert figure.best == pytest.approx(first_guess(scheme.questions, 2000))
    assert figure.luck == 1 / 2000 and figure.trials == 2000
    assert (linked(scheme, values, (values + 7) % k).measured or 0) < 0.02, "devices whose value changed escape"


def test_a_memo_that_is_sent_is_as_good_as_a_name() -> None:
    values = np.arange(2000) % 40
    figure = linked(scheme_with(of_size(40, mechanism="oue"), eps_inf=2.0), values, values)
    assert figure.measured == pytest.approx(0.98, abs=0.02)


# Finding people in another table: the likelihood attack, and the published one.
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
    seen = seen_of_tuples(respondent, devices, skewed)

    def right(shares: dict[str, Any]) -> float:
        used = np.array([scores.any(axis=1) for scores in guessed(seen, random, shares).values()])
        assert (used.sum(axis=0) == 1).all(), "one answer of a report is used"
        return float((used.argmax(axis=0) == respondent.sampled(devices)).mean())

    even = right({name: np.full(k, 1 / k) for name, k in zip(NAMES, SIZES, strict=True)})
    assert even == pytest.approx(1 / 6, abs=0.03)
    assert right({name: search.estimated_shares(respondent, name) for name in NAMES}) > even + 0.1


def test_split_budgets_and_memos_are_attacked_too() -> None:
    (whole,) = hits(survey("l-grr", "spl", eps_inf=24.0, eps_1=12.0), "best", targets=200)
    assert whole > 5 / 2000


@pytest.mark.parametrize(("mechanism", "terms"), [("oue-z", {"eps": 6.0}), ("grr", {"eps_inf": 6.0, "eps_1": 3.0})])
def test_an_attribute_that_is_asked_alone_has_no_fakes(mechanism: str, terms: dict[str, Any]) -> None:
    """Of two attributes each survey asks one: failure would be a mechanism that is for fakes only."""
    asked = scheme_with(*(of_size(4, name, mechanism=mechanism) for name in NAMES[:2]), solution="rs+fd", **terms)
    table = {name: column % 4 for name, column in people(50).items()}
    search = Search(asked.survey, table, table, "published", 0.01, 1, targets=10, surveys=2)
    assert len(search.run(seeded_keyring(3), no_step)[0]) == 8


def test_without_noise_everybody_who_is_unique_is_found() -> None:
    scheme = survey("grr", eps=20.0)
    table, devices = people(3000), np.arange(300, dtype=np.uint64)
    targets = {name: column[:300] for name, column in table.items()}
    respondent = Respondent(scheme, seeded_keyring(0))
    every = np.repeat(np.arange(6)[:, None], 300, axis=1)  # one attribute after the other
    seen = seen_by_smp(respondent, every, devices, targets)
    hits, _ = rank([seen], targets, table, NAMES)
    assert hits[1].share == pytest.approx(without_noise(targets, table, NAMES, 1), abs=0.01)
    assert hits[10].share == 1.0
    assert rank([seen], targets, table, NAMES[:2])[0][1].share == pytest.approx(
        without_noise(targets, table, NAMES[:2], 1), abs=1e-3
    )
    assert rank([guessed(seen, np.random.default_rng(0))], targets, table, NAMES)[0][10].share == 1.0


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
