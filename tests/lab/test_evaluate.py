"""`hearsay evaluate`: scenarios and tables in, figures and a page out, as closed forms say; bad input is refused."""

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.evaluation.measuring import Infeasible, Score, evaluate
from lab.evaluation.methods import METHODS, Method, choose
from lab.evaluation.truth import Truth, noisy_priors, one_period
from producers.scenarios import Presences
from protocols.errors import HearsayError, ScenarioError, SettingsError, SurveyError
from tests.helpers.browser import events_in
from tests.lab.calling import call, figures_of


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """200 people with codes that look like numbers, a blank now and then, and a name each."""
    path, quoted = tmp_path / "people.csv", '"Yes, I do"'
    rows = [f"0{i % 3},{'' if i % 5 else quoted},person {i},only" for i in range(200)]
    path.write_text("\n".join(["Zip code,Agrees?,Name,Country", *rows]))
    return path


def test_a_table_is_taken_as_it_is_found(table: Path) -> None:
    found = figures_of("evaluate --runs 2 --attributes 'Zip code,Agrees?' --methods one-shot --csv", table)
    assert found["attributes"] == {"Zip code": 3, "Agrees?": 2} and found["people"] == [200]
    assert {outcome["eps"] for outcome in found["outcomes"]} == {0.5, 1, 2, 4}
    assert all(np.isfinite(outcome["mse"]["raw"]["value"]) for outcome in found["outcomes"])


@pytest.mark.parametrize("column", ["Name", "Country"])
def test_a_column_that_is_no_question_is_refused(table: Path, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.populations.MOST_VALUES", 100)
    error = call(f"evaluate --attributes Agrees?,{column} --csv", table).exception
    assert isinstance(error, ScenarioError) and repr(column) in error.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        (b"", "cannot be read"),
        (b"a,b\n", "has no rows"),
        (b"a,a\n1,2\n", "has the column 'a' twice"),
        (b"name,town\nann,a\nbob,+33612345678,unwell\n", "row 3 has 3 columns, not 2"),
        (b"name,town\nann,a\nbob\xff,+33612345678\n", "cannot be read as CSV"),
        (b"bob,+33612345678\nann,x\n", "has no attribute 'town'"),
    ],
)
def test_what_is_no_table_is_refused_and_its_rows_are_not_quoted(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "people.csv"
    if content is not None:
        path.write_bytes(content)
    error = call("evaluate --attributes town --csv", path).exception
    assert isinstance(error, HearsayError) and said in error.message
    assert not any(word in str(error) for word in ("bob", "unwell", "3361"))


def test_everybody_once_is_the_population_of_the_papers_and_periods_are_lived_through_one_by_one() -> None:
    found = figures_of("evaluate --runs 2 --once --methods smp[grr] --eps ln3")
    assert found["people"] == [88_935]
    assert found["outcomes"][0]["eps"] == pytest.approx(np.log(3))
    words = "evaluate --runs 2 --scenario commuters --devices 300 --periods 3 --methods smp[l-osue]"
    assert len(figures_of(words)["people"]) == 3


def test_published_terms_stand_beside_ours_where_they_differ(tmp_path: Path) -> None:
    page, methods = tmp_path / "evaluation.html", "smp[l-grr],smp[l-osue],smp[l-oue],rs+fd[grr]"
    words = "evaluate --runs 2 --scenario telemetry --devices 500 --eps 1 --published --alpha 0.9 --methods"
    result = call(words, methods, "--html", page)
    assert result.exit_code == 0, result.output
    rows = [tuple(line.split()[:2]) for line in result.stdout.splitlines() if "[" in line]
    ours, theirs = ("smp[l-grr]", "exact"), ("smp[l-grr]", "published")
    assert rows[:4] == [ours, theirs, ("smp[l-osue]", "exact"), ("smp[l-oue]", "exact")]
    assert rows[4:6] == [("rs+fd[grr]", "tuple"), ("rs+fd[grr]", "published")]
    assert "choose eps_1 below" in result.stdout
    html = page.read_text()
    (told,) = events_in(html)
    assert {score["label"] for score in told["record"]["scores"]} >= {"smp[l-grr]", "smp[l-grr], published"}
    assert told["record"]["infeasible"][0]["infeasible"]
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="http', html)


def test_figures_are_not_lost_where_the_page_cannot_be_written(tmp_path: Path) -> None:
    result = call("evaluate --runs 2 --scenario telemetry --devices 100 --methods smp[grr] --html", tmp_path)
    assert isinstance(result.exception, IsADirectoryError) and "smp[grr]" in result.stdout


@pytest.mark.parametrize("wrong", ["--eps 0", "--eps many", "--eps nan", "--alpha 1", "--corrections guess"])
def test_wrong_usage_is_named(wrong: str) -> None:
    result = call(f"evaluate {wrong}")
    assert result.exit_code == 2 and wrong.split()[0] in result.output


def test_what_does_not_go_together_and_a_method_nobody_knows_are_refused() -> None:
    for wrong in ("--label income", "--sensitive town", "--label income --csv x.csv --test 1"):
        assert call(f"evaluate {wrong}").exit_code == 2
    assert isinstance(call("evaluate --methods l-grrr").exception, SettingsError)


@pytest.fixture(scope="module")
def earners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 people: town and height say something about income, the name and the country nothing."""
    draw = random.Random(7)
    lines = ["name,town,height,country,income"]
    for person in range(3_000):
        high = draw.random() < 0.3
        town = draw.choices(["Ashford", "Brook", "Cray"], [1, 2, 6] if high else [4, 3, 2])[0]
        height = "?" if person % 50 == 0 else f"{draw.gauss(180 if high else 170, 8):.1f}"
        lines.append(f"person {person},{town},{height},only,{'high' if high else 'low'}")
    path = tmp_path_factory.mktemp("label") / "people.csv"
    path.write_text("\n".join(lines))
    return path


def learnt(earners: Path, *arguments: str) -> dict[str, Any]:
    return figures_of("evaluate --label income --runs 2 --eps 6 --csv", earners, *arguments)


def test_crosses_and_records_stand_beside_no_privacy_and_the_largest_class(earners: Path) -> None:
    found = learnt(earners, "--methods", "one-shot", "--sensitive", "town")
    assert found["attributes"] == {"town": 3, "height": 9}, "numbers are cut; what is unknown is a value of its own"
    assert found["binned"] == ["height"] and found["left_out"] == ["name", "country"]
    assert (found["people"], found["tried_on"]) == (2_100, 900)
    by_source = {one["source"]: one for one in found["learnt"]}
    assert list(by_source) == ["majority class", "no privacy", "crosses", "synthetic records"]
    assert by_source["majority class"]["auc"]["value"] == 0.5
    assert 0.5 < by_source["crosses"]["auc"]["value"] < by_source["no privacy"]["auc"]["value"] + 0.02
    assert by_source["crosses"]["reveals"] == pytest.approx(6, rel=1e-3)
    assert by_source["no privacy"]["parity_gap"]["value"] > 0.1
    assert by_source["majority class"]["parity_gap"]["value"] == 0


def test_the_same_seed_gives_the_same_figures_and_memos_reveal_less(earners: Path) -> None:
    assert learnt(earners, "--seed", "4") == learnt(earners, "--seed", "4")
    assert learnt(earners)["learnt"][2]["reveals"] == pytest.approx(3, rel=1e-3), "eps_1 is half of eps_inf"


def test_a_terminal_shows_a_table_and_a_page_is_written(earners: Path, tmp_path: Path) -> None:
    page = tmp_path / "learning.html"
    result = call("evaluate --label income --sensitive town --runs 2 --eps 1,6 --csv", earners, "--html", page)
    assert result.exit_code == 0, result.output
    assert "majority class" in result.stdout and "opportunity" in result.stdout
    assert max(map(len, result.stdout.splitlines()[2:-1])) <= 80
    (told,) = events_in(page.read_text())
    assert [one["eps"] for one in told["record"]["learnt"]] == [None, None, 1, 1, 6, 6]


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("name", "label 'name' has 3,000 different"),
        ("country", "label 'country' has 1 different"),
        ("nothing", "has no attribute 'nothing'"),
        ("income --sensitive nothing", "has no attribute 'nothing'"),
        ("income --attributes country", "column 'country' has 1 different"),
    ],
)
def test_columns_that_cannot_be_learnt_are_refused(earners: Path, label: str, said: str) -> None:
    error = call(f"evaluate --label {label} --csv", earners).exception
    assert isinstance(error, ScenarioError) and said in error.message


def test_a_budget_that_no_survey_may_have_is_refused(earners: Path) -> None:
    error = call("evaluate --label income --eps 100 --csv", earners).exception
    assert isinstance(error, SurveyError) and "eps_inf" in error.message


SEED = 6


def truth_of(*people: int, **sizes: int) -> Truth:
    """People whose values are skewed: the first value is the commonest."""
    moments = []
    for period, count in enumerate(people):
        random = np.random.default_rng(period)
        values = {name: np.minimum(random.geometric(2 / k, count) - 1, k - 1) for name, k in sizes.items()}
        devices = random.choice(10 * count + 1, count, replace=False).astype(np.uint64)
        moments.append(Presences(period, devices, values))
    return Truth(sizes, moments)


def scored(truth: Truth, *methods: Method | str, eps: float = 2.0, **options: object) -> list[Score]:
    named = [one for method in methods for one in (choose([method]) if isinstance(method, str) else [method])]
    outcomes = evaluate(truth, named, [eps], seed=SEED, **options)  # type: ignore[arg-type]
    assert all(isinstance(outcome, Score) for outcome in outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, Score)]


def reason(truth: Truth, name: str, eps: float = 1.0, **options: object) -> str:
    """Why a method is not possible."""
    (outcome,) = evaluate(truth, choose([name], placed=True), [eps], runs=1, **options)  # type: ignore[arg-type]
    assert isinstance(outcome, Infeasible) and "\n" not in outcome.infeasible
    return outcome.infeasible


ON_ALL_TERMS = [
    *(method for method in METHODS if not method.placed),
    *(method.as_published() for method in METHODS if method.republished),
    *(method.taking_turns(2) for method in choose(["smp[grr]", "spl[oue]", "rs+fd[grr]"])),
]


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("method", ON_ALL_TERMS, ids=lambda method: f"{method.name}, {method.terms}")
def test_measured_errors_are_those_of_the_closed_form(method: Method) -> None:
    """Over periods of different sizes, one of them empty."""
    (score,) = scored(truth_of(600, 0, 1500, some=6, many=30), method, runs=30)
    assert score.mse["raw"].value == pytest.approx(score.expected_mse, rel=0.2)  # the geometric one: 0.1 by chance


@pytest.mark.parametrize("name", ["many", "a1", "a77"])
def test_a_refused_attribute_is_called_by_its_own_name(name: str) -> None:
    truth = truth_of(3, few=2, **{name: 70_000})
    assert reason(truth, "rs+fd[grr]").startswith(f"attribute '{name}': grr takes at most")
    assert "has no grid" in reason(truth, "geo-grid")


@pytest.mark.parametrize(
    ("name", "eps", "alpha", "said"),
    [
        ("rs+fd[grr]", 1.0, 0.5, "hides one attribute among several"),
        ("smp[l-oue]", 1.0, 0.9, "l-oue cannot reach eps_1 = 0.9 with eps_inf = 1 (choose eps_1 below 0.763383, or"),
        ("smp[l-grr]", 30.0, 0.5, "eps_inf: 30 protects nothing; choose 0.001 to 20"),
        ("smp[l-grr]", 1e-4, 0.5, "eps_inf = 0.0001: should be greater than or equal to 0.001 ("),
        ("smp[l-grr]", 1.0, 0.9999, "eps_1: 0.9999 must be below eps_inf = 1, by 0.001 or more; leave it out to"),
    ],
)
def test_what_no_survey_takes_is_reported_with_what_one_would_take(
    name: str, eps: float, alpha: float, said: str
) -> None:
    assert said in reason(truth_of(50, a=3), name, eps, alpha=alpha)


def test_a_prior_of_a_large_census_is_one_that_a_survey_takes() -> None:
    """Half a person among two millions is less than a survey's smallest share."""
    people = np.arange(2_000_000)
    truth = one_period({"a": 3, "b": 2}, {"a": people * 0, "b": people % 2})
    priors = noisy_priors(truth, 10.0, np.random.default_rng(1))
    (method,) = choose(["rs+rfd[grr]"])
    survey = method.survey(Truth(truth.sizes, truth.moments, priors), 1.0, 0.5)
    assert survey.attributes[0].prior == pytest.approx({"0": 1, "1": 2e-6, "2": 2e-6}, abs=1e-5)


def test_runs_differ_and_the_same_keyring_gives_the_same_figures() -> None:
    truth = truth_of(500, a=3, b=4)
    once, again = (scored(truth, "smp[oue]", runs=3)[0] for _ in range(2))
    assert once.record() == again.record()
    assert once.mse["raw"].error > 0


SETS = """
{id: home, start: 2026-01-01T00:00:00Z, period: 1d, eps: 2, attributes: [
  {name: on, several: 4, values: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x]}]}"""


@pytest.mark.parametrize(("methods", "named"), [("one-shot", "grr"), ("longitudinal", "l-grr")])
def test_sets_stand_beside_yes_and_no_with_the_errors_that_plans_expect(
    tmp_path: Path, methods: str, named: str
) -> None:
    (path := tmp_path / "survey.yaml").write_text(SETS)
    found = figures_of(f"evaluate --runs 8 --devices 2000 --eps 2 --methods {methods} --sets", path)
    assert 1500 < found["people"] <= 2000, "those of the first period"
    errors = {score["way"]: score["rmse"]["value"] for score in found["scores"]}
    for score in found["scores"]:
        assert errors[score["way"]] == pytest.approx(score["expected"], rel=0.25), score
    assert errors["set, named"] < 0.85 * min(errors["set, bits"], errors["yes or no"])
    assert found["scores"][0]["mechanism"] == named


def test_sets_are_shown_in_a_table_and_other_surveys_are_refused(tmp_path: Path) -> None:
    (path := tmp_path / "survey.yaml").write_text(SETS)
    shown = call("evaluate --runs 2 --devices 300 --eps 1 --methods one-shot --sets", path)
    assert "RMSE of shares of sets" in shown.stdout and "yes or no" in shown.stdout, shown.output
    path.write_text(SETS.replace("several: 4, ", ""))
    refused = call("evaluate --sets", path)
    assert refused.exit_code == 2 and "one attribute, which has several" in " ".join(refused.stderr.split())
