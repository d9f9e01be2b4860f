"""Runs, results and comparisons, from `import hearsay`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hearsay
from analytics.estimation import estimate
from protocols.errors import ResultsError, ScenarioError, SurveyError
from protocols.scheme import Scheme
from tests.hearsay.library.surveys import COLOURS, HOURS, survey


def test_a_run_gives_what_can_be_read_afterwards_and_the_truth(tmp_path: Path) -> None:
    ran = hearsay.run(survey(), devices=300, periods=2, data=tmp_path)
    read = hearsay.read_results(tmp_path)
    assert read["histograms"] == ran["histograms"]
    published = [
        "suppressed",
        "kind",
        "row",
        "column",
        "adjusted",
        *(f"adjusted_{part}" for part in ("error", "low", "high")),
    ]
    estimated = hearsay.estimate(survey(), []).column_names
    assert [name for name in read["histograms"].column_names if name not in published] == estimated
    assert ran["visitors"]["truth"].to_pylist() == [round(n) for n in read["visitors"]["visitors"].to_pylist()]
    assert read["visitors"]["truth"].null_count == len(read["visitors"])
    with pytest.raises(SurveyError, match="no survey 'other'"):
        hearsay.read_results(tmp_path, survey="other")


def test_a_run_without_a_directory_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert len(hearsay.run(survey(), devices=50, periods=1)["visitors"]) == 1
    assert list(tmp_path.iterdir()) == []


def test_results_are_read_from_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResultsError, match="there are no results in hearsay-data"):
        hearsay.read_results()
    with pytest.raises(ResultsError, match="contains no results"):
        hearsay.read_results(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_methods_are_compared_on_ones_own_data() -> None:
    table = hearsay.evaluate(
        {"colour": COLOURS, "hour": HOURS[:10_000]}, eps=[1], methods=["smp[l-grr]", "smp[l-oue]"], alpha=0.9, runs=5
    )
    scores = {row["correction"]: row for row in table.to_pylist()}
    assert list(scores) == ["raw", "norm-sub", "clip", None]
    assert 0.5 < scores["raw"]["mse"] / scores["raw"]["expected_mse"] < 2
    assert scores["raw"]["reveals"] == pytest.approx(0.9)
    assert scores[None]["method"] == "smp[l-oue]" and "eps_1" in scores[None]["infeasible"]
    with pytest.raises(ScenarioError, match="'hour' has 1 different"):
        hearsay.evaluate({"hour": [3, 3]})
    with pytest.raises(ScenarioError, match="one value per person"):
        hearsay.evaluate({"colour": ["a", "b"], "hour": [3]})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda survey: hearsay.estimate(None, b""),
        lambda survey: hearsay.estimate(survey, None),
        lambda survey: hearsay.estimate(survey, [None]),
        lambda survey: hearsay.estimate(survey, "text"),
        lambda survey: hearsay.estimate(survey, [], confidence=95),
        lambda survey: hearsay.estimate_counts(None, {"a": [1, 2]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, None, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": None}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [1, None]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [1.5, 1]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [-1, 1]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [1, 2]}, {"a": None}),
        lambda survey: estimate(None, 10, Scheme(survey).questions[0].channel),
        lambda survey: estimate([1, 2], None, Scheme(survey).questions[0].channel),
    ],
)
def test_what_is_no_count_and_no_report_is_refused_with_a_sentence(wrong: Callable[[hearsay.Survey], object]) -> None:
    survey = hearsay.load_survey(
        "{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: [{name: a, values: [x, y]}]}"
    )
    with pytest.raises(hearsay.HearsayError) as refused:
        wrong(survey)
    assert refused.value.hint


def test_a_survey_of_real_time_is_rehearsed_under_an_id_of_its_own() -> None:
    survey = hearsay.load_survey(
        "{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: [{name: a, values: [x, y]}]}"
    )
    tables = hearsay.run(survey, devices=30, periods=1)
    assert tables["visitors"]["visitors"].to_pylist() == tables["visitors"]["truth"].to_pylist()
