"""`hearsay people`: virtual people from a user's own aggregates and from published results."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import hearsay
from hearsay.reports.files import mobility_of, open_results
from producers.files import read_table
from producers.scenarios.virtual_humans import festival_week
from protocols.errors import HearsayError, ResultsError
from protocols.survey_text import parse_survey
from tests.lab.calling import call, figures_of

SURVEY = """
{id: town, start: 2026-01-05T00:00:00Z, period: 1d, eps: 5, clock: source, horizon: 4, attributes: [
  {name: age, values: [young, middle, old]}, {name: move, values: [N>N, N>S, S>N, S>S], role: transition}]}"""
HEAD = "first,last,attribute,value,people,error\n"
SMALL = (
    HEAD + "1,1,,,60,\n2,2,,,50,\n1,2,,,80,\n1,1,age,old,20,\n1,1,age,young,40,\n2,2,age,old,25,\n2,2,age,young,25,\n"
)


@pytest.fixture(scope="module", params=["", ", minimum: 25"], ids=["exact", "few hidden"])
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("people") / "data"
    survey = parse_survey(SURVEY.replace("horizon: 4", f"horizon: 4{request.param}"))
    hearsay.run(survey, devices=2_000, periods=7, data=root)
    return root


def unique(table: pa.Table, first: str, last: str) -> int:
    """The different people of these days."""
    column = table["day"].combine_chunks()
    column = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    listed, days = column.dictionary.to_pylist(), column.indices.to_numpy()
    inside = (days >= listed.index(first)) & (days <= listed.index(last))
    return len(np.unique(table["person"].to_numpy()[inside]))


def facts_of(table: pa.Table) -> dict[str, object]:
    found: dict[str, object] = json.loads(table.schema.metadata[b"hearsay"])
    return found


def test_all_28_windows_of_the_festival_are_exact(tmp_path: Path) -> None:
    week, path = festival_week(), tmp_path / "week.csv"
    days = week["days"]
    windows = {tuple(window.split("-")): people for window, people in week["unions"].items()}
    rows = [f"{days[int(w[0]) - 1]},{days[int(w[-1]) - 1]},,,{people}," for w, people in windows.items()]
    rows += [f"{days[0]},{days[-1]},gender,{value},{n}," for value, n in week["attributes"]["gender"].items()]
    path.write_text(HEAD + "\n".join(rows))
    found = figures_of(f"people {path} --lasting gender --out {tmp_path / 'people.parquet'}")
    assert (found["windows"], found["windows_exact"], found["people"]) == (28, 28, week["people"])
    people = pyarrow.parquet.read_table(tmp_path / "people.parquet")
    for window, count in windows.items():
        assert unique(people, days[int(window[0]) - 1], days[int(window[-1]) - 1]) == count
    _, rows = np.unique(people["person"].to_numpy(), return_index=True)
    counts = people["gender"].take(pa.array(rows)).combine_chunks().value_counts().to_pylist()
    assert {one["values"]: one["counts"] for one in counts} == week["attributes"]["gender"]


def test_a_csv_file_of_people_says_what_it_follows_and_daily_values_are_dealt(tmp_path: Path) -> None:
    source, out = tmp_path / "small.csv", tmp_path / "people.csv"
    source.write_text(SMALL)
    result = call(f"people {source} --stay age=1 --out {out}")
    assert result.exit_code == 0, result.output
    assert "3 followed, 3 of them exactly" in result.stdout and "100% of people go on" in result.stdout
    people = read_table(out).to_pylist()
    assert sum(row["day"] == "2" and row["age"] == "old" for row in people) == 25
    first = {row["person"]: row["age"] for row in people if row["day"] == "1"}
    again = [(first[row["person"]], row["age"]) for row in people if row["day"] == "2" and row["person"] in first]
    assert len(again) == 30 and sum(old == new for old, new in again) >= 28


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (SMALL.replace("1,2,,,80,", "1,2,,,55,"), "", "no people can have caused these windows"),
        (SMALL.replace("1,2,,,80,", "1,2,,,eighty,"), "", "row 3: a day, a number of people"),
        (SMALL + "1,2,age,old,30,\n", "", "'age' is given for days 1 to 2 together"),
        (SMALL + "1,1,,,60,\n", "", "row 8: these days, attribute and value are there before"),
        (SMALL.replace("people", "visitors"), "", "no column 'people'"),
        (SMALL, "--lasting size", "no attribute 'size'"),
        (SMALL, "--people 70", "between 80 and 80 people"),
        (HEAD + "1,1,age,old,20,\n", "", "does not say how many people came"),
        (SMALL, "--out people.xlsx", "written as CSV or Parquet"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(tmp_path: Path, text: str, options: str, said: str) -> None:
    path = tmp_path / "aggregates.csv"
    path.write_text(text)
    error = call(f"people {path} {options}").exception
    assert isinstance(error, HearsayError) and said in str(error), error


def test_people_have_the_windows_of_the_report_up_to_the_horizon(data: Path) -> None:
    with open_results("town", data, None) as (results, _):
        report = mobility_of(results, "town")
    people = hearsay.people(data, lasting=["age"], seed=3)
    facts, missed = facts_of(people), []
    for cell in report.triangle:
        if cell.visitors is not None:
            days = [f"2026-01-{5 + period:02}" for period in (cell.first, cell.last)]
            missed.append(abs(unique(people, *days) - cell.visitors.value))
    assert len(missed) >= 7 and max(missed) <= (3 if report.minimum else 0), "without counts by gap, flows are rounded"
    assert facts["fewest"] <= facts["people"] == facts["most"]
    assert people.num_rows == sum(int(w.visitors.value) for w in report.windows if w.kind == "period" and w.visitors)
    again = hearsay.people(data, lasting=["age"], seed=3)
    assert again.equals(people, check_metadata=True)


def test_with_noise_on_presence_single_periods_tell_nothing_about_who_returned(tmp_path: Path) -> None:
    survey = parse_survey(SURVEY.replace("horizon: 4", "horizon: 4, presence_epsilon: 3"))
    hearsay.run(survey, devices=200, periods=3, data=tmp_path / "data")
    with pytest.raises(ResultsError, match="nothing tells on which days people return"):
        hearsay.people(tmp_path / "data", seed=3)


def test_lasting_values_follow_what_is_published_and_transitions_go_on_from_where_they_ended(data: Path) -> None:
    people = hearsay.people(data, lasting=["age"], periods=(1, 3), seed=4)
    facts = facts_of(people)
    assert facts["following"] == {"move": 1.0} and facts["budget"] == 0
    rows = people.to_pylist()
    pairs = [(a, b) for a, b in pairwise(rows) if a["person"] == b["person"]]
    assert all(a["age"] == b["age"] for a, b in pairs)
    on = sum(a["move"][-1] == b["move"][0] for a, b in pairs) / len(pairs)
    assert on > 0.8, "independent moves would go on in half of all cases"
