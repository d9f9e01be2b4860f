"""What an edge may reveal about people: it does not take a survey over its limits."""

from math import hypot
from pathlib import Path

import pytest

from hearsay.data_directory import DataDirectory
from hearsay.running.collecting import collect
from hearsay.running.limits import require_within
from memo_store.registry import SurveyRecord, record_of
from protocols.errors import StoreError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from servers.settings import LimitSettings, Settings

FOODS = ["soup", "bread", "an apple", "rice", "tea"]
BUDGETS = "eps_inf: 2, eps_1: 1"


def asking(id: str, foods: list[str], terms: str = BUDGETS, name: str = "food", more: str = "") -> Survey:
    attribute = f"{{name: {name}, values: [{', '.join(foods)}]}}"
    given = f"id: {id}, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, {terms}"
    return parse_survey(f"{{{given}, attributes: [{attribute}{more}]}}")


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"report": 0.9}, r"one report may reveal 1, more than 0\.9, this edge's limit of a report"),
        ({"value": 1.9}, r"what all surveys tell about 'food' in a year is 2, more than 1\.9"),
        ({"year": 9.9}, r"the charges of a year are 10, more than 9\.9"),
    ],
)
def test_a_survey_over_a_limit_is_not_taken_and_leaves_nothing_behind(
    tmp_path: Path, limits: dict[str, float], message: str
) -> None:
    settings = Settings(limits=LimitSettings(**limits))
    with (
        pytest.raises(StoreError, match=rf"survey 'one' is not taken: .*{message}") as caught,
        collect(DataDirectory(tmp_path / "data"), asking("one", FOODS), settings, None),
    ):
        pass
    assert f"HEARSAY_LIMITS_{next(iter(limits)).upper()}" in caught.value.hint
    assert not (tmp_path / "data").exists()


def test_what_two_surveys_ask_alike_counts_once_about_a_value_and_all_else_adds_up() -> None:
    taken: list[SurveyRecord] = []

    def take(survey: Survey) -> None:
        require_within(LimitSettings(value=4.0, year=24.0), Scheme(survey), taken)
        taken.append(record_of(Scheme(survey)))

    take(asking("one", FOODS))  # 2 about food, 5 * 2 in a year
    take(asking("same", FOODS[::-1], f"{BUDGETS}, memo_cap: 1"))  # no more about food, 2 in a year
    take(asking("else", FOODS, f"{BUDGETS}, memo_cap: 3", name="meal"))  # about another value, 6 in a year
    with pytest.raises(StoreError, match="the charges of a year are 28, more than 24"):
        take(asking("more", ["a", "b", "c", "d", "e"]))
    with pytest.raises(StoreError, match=r"about 'food' in a year is 4\.2, more than 4"):
        take(asking("padded", [*FOODS, "cake"], "eps_inf: 2.2, eps_1: 1, memo_cap: 1"))
    take(asking("padded", [*FOODS, "cake"], f"{BUDGETS}, memo_cap: 1"))
    take(asking("one", FOODS))  # it was taken before


def test_of_attributes_among_which_a_person_draws_one_the_largest_counts_and_without_memos_every_answer() -> None:
    plan = ", {name: plan, values: [free, paid]}"
    for solution, year in (("smp", 10.0), ("spl", 5 * 1.0 + 2 * 1.0), ("rs+fd", 10.0)):
        asked = asking("one", FOODS, f"{BUDGETS}, solution: {solution}", more=plan)
        require_within(LimitSettings(year=year), Scheme(asked), [])
        with pytest.raises(StoreError, match="the charges of a year are"):
            require_within(LimitSettings(year=year * 0.999), Scheme(asked), [])
    for terms, told in (("eps: 0.5", 365 * 0.5), ("eps: 0.5, one_in: 10", 37 * 0.5)):
        with pytest.raises(StoreError, match=rf"about 'food' in a year is {told:.4g}"):
            require_within(LimitSettings(value=1.0), Scheme(asking("one", FOODS, terms)), [])


def test_a_question_that_is_drawn_among_several_counts_once_if_surveys_draw_it_together() -> None:
    """Of age alone and age with area, each person is asked one; by other shares it may be the other one."""
    more = ", {name: age, values: [young, old]}"

    def crossed(id: str, share: float) -> Survey:
        cross = f"crosses: [{{of: [food, age], share: {share}}}], memo_cap: 1"
        return asking(id, FOODS, f"{BUDGETS}, {cross}", more=more)

    taken = [record_of(Scheme(crossed("one", 0.5)))]
    require_within(LimitSettings(value=2.0), Scheme(crossed("same", 0.5)), taken)
    with pytest.raises(StoreError, match="in a year is 4, more than 2"):
        require_within(LimitSettings(value=2.0), Scheme(crossed("other", 0.6)), taken)


@pytest.mark.parametrize("columns", [60, 120])
def test_places_count_as_two_that_are_500_m_apart_however_large_the_grid_is(columns: int) -> None:
    """All reports lose 1 for positions 400 m apart, whose cells can be further apart by borders and kept cells."""
    place = (
        f"{{name: place, grid: {{at: [47, 6], cell: 100m, columns: {columns}, rows: 45}}, "
        "geo_inf: {level: 1, radius: 400m}, geo: {level: 0.5, radius: 400m}}"
    )
    asked = parse_survey(
        f"{{id: one, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, memo_cap: 3, attributes: [{place}]}}"
    )
    steps = [(i, j) for i in range(9) for j in range(9)]
    at_400, at_500 = (
        max(hypot(i, j) for i, j in steps if hypot(max(0, i - 1.5), max(0, j - 1.5)) <= sides) for sides in (4, 5)
    )
    near = at_500 / at_400
    for limits in ({"report": near / 2}, {"value": near}, {"year": 3 * near}):
        require_within(LimitSettings(**limits), Scheme(asked), [])
        with pytest.raises(StoreError):
            require_within(LimitSettings(**{name: 0.999 * limit for name, limit in limits.items()}), Scheme(asked), [])
