"""`hearsay edge` as an operator runs it: files are dropped, it is killed; and surveys over its limits are not taken."""

import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from contextlib import closing
from datetime import timedelta
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
from stream_app.finals import FinalKey
from stream_app.local import LocalStore
from tests.helpers import town_calls as town
from tests.helpers.eventually import eventually
from tests.helpers.nursery import Child, launch, run
from views.reading import Results

KEYS = ("fleet.key", "clock.key", "presence.key", "redis.new")
WAIT_SECONDS = 240.0


def finals(data: str) -> dict[FinalKey, bytes]:
    with closing(LocalStore.existing(Path(data) / "collector")) as store:
        return Results(store).finals("town")


def done(*words: str) -> str:
    ended = run(*words)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def prepare(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    Path("dropped").mkdir()
    Path("survey.yaml").write_text(town.SURVEY)
    Path("edge.yaml").write_text(town.EDGE)


def replayed(came: list[town.Call]) -> None:
    """Replay the sorted events that came in time, under the keys of the edge, into `other`."""
    Path("other").mkdir()
    for key in KEYS[:3]:
        shutil.copy(f"data/{key}", "other")
    Path("other", KEYS[3]).touch()  # its Redis is new
    town.write(Path("sorted.csv"), sorted(town.in_time(came), key=lambda call: call.at))
    words = "replay sorted.csv --survey survey.yaml --person msisdn --time at --offset ahead --map cell=area"
    rules = "--map cell=way --choose area=longest --choose way=transition --data other"
    done(*words.split(), *rules.split())


def visitors(came: list[town.Call]) -> list[int]:
    """The people of each period, counted one by one."""
    seen = {((call.at - town.START) // timedelta(hours=6), call.person) for call in town.in_time(came)}
    counts = Counter(period for period, _ in seen)
    return [counts[period] for period in sorted(counts)]


def test_finals_are_those_of_a_replay_of_the_sorted_events_that_came_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path, monkeypatch)
    came = town.calls(60, 2)
    town.write(Path("dropped/b.csv"), came[: len(came) // 2])
    state = json.loads(done("edge", "edge.yaml", "--once", "--json"))
    assert state["rows"] == len(came) // 2 and state["open"]
    town.write(Path("dropped/a.csv"), came[len(came) // 2 :])
    end = town.START + timedelta(days=2)
    state = json.loads(done("edge", "edge.yaml", "--end", end.isoformat(), "--json"))
    late = len(came) - len(town.in_time(came))
    assert state["open"] == {} and state["faults"]["late"] == sum(state["late"].values()) == late > 0
    replayed(came)
    assert finals("data") == finals("other") != {}
    shortfalls = [w["shortfall"] for w in json.loads(done("report", "--data", "data", "--json"))["windows"]]
    assert max(shortfalls) > 0, "late events are published"


def wait_for_work(since: float) -> None:
    """Until the edge has read something since it was started."""
    state = Path("data/edge/town/state")
    eventually(lambda: state.exists() and state.stat().st_mtime > since, WAIT_SECONDS)


@pytest.mark.long(part="kills")
def test_a_town_of_2000_people_is_counted_exactly_through_three_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failure would look like: a person more or less in a period, other finals than the replay's, or a marker."""
    prepare(tmp_path, monkeypatch)
    came, parts, rng = town.calls(2000, 4), 24, random.Random(3)
    kills = {4, 11, 18}
    with (tmp_path / "log").open("wb") as log:

        def started() -> Child:
            command = [sys.executable, "-m", "hearsay", "edge", "edge.yaml"]
            child = launch(command, env={**os.environ, "COLUMNS": "80"}, stdout=log, stderr=log)
            assert isinstance(child, Child)
            return child

        since, edge = time.time(), started()
        try:
            for part in range(parts):
                some = came[len(came) * part // parts : len(came) * (part + 1) // parts]
                if part in kills:
                    wait_for_work(since)
                town.write(Path(f"dropped/{part:02d}.csv"), some)
                if part in kills:
                    time.sleep(rng.random() / 2)  # until somewhere in its work on this file
                    edge.kill()
                    edge.wait(WAIT_SECONDS)
                    since, edge = time.time(), started()
            wait_for_work(since)
        finally:
            edge.kill()
            edge.wait(WAIT_SECONDS)
    end = town.START + timedelta(days=4)
    state = json.loads(done("edge", "edge.yaml", "--end", end.isoformat(), "--json"))
    assert (state["rows"], state["open"]) == (len(came), {})
    assert state["faults"]["late"] == len(came) - len(town.in_time(came)) > 400
    with closing(LocalStore.existing(Path("data/collector"))) as store:
        assert [final.n for final in Results(store).histograms("town")] == visitors(came)
    replayed(came)
    assert finals("data") == finals("other")
    leaks = [path for path in Path("data").rglob("*") if path.is_file() and town.MARKER.encode() in path.read_bytes()]
    said = Path("log").read_text()
    assert not leaks and said.count("edge started") == 4 and town.MARKER not in said


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


def test_an_edge_whose_rows_are_mostly_faulty_does_not_end_with_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path, monkeypatch)
    rows = [call.row().replace("2026-", "20x6-") for call in town.calls(20, 1)]
    Path("dropped/bad.csv").write_text("".join([town.HEADER, *rows]))
    refused = run("edge", "edge.yaml", "--once", "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["faults"]["bad_time"] == len(rows)
    assert f"{len(rows)} of the {len(rows)} rows that were read (100.0%) have one fault: bad time" in refused.stderr
    assert "--most-faults" in refused.stderr
    done("edge", "edge.yaml", "--once")  # nothing is read again: its rows are those of the run before
    Path("dropped/more.csv").write_text(Path("dropped/bad.csv").read_text())
    done("edge", "edge.yaml", "--once", "--most-faults", "100%")
