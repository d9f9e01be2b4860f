"""`hearsay edge` as an operator runs it: files of a town's calls are dropped while it runs, and it is killed."""

import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from stream_app.finals import FinalKey
from stream_app.local import LocalStore
from tests.helpers import town_calls as town
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
    state, deadline = Path("data/edge/town/state"), time.monotonic() + WAIT_SECONDS
    while not state.exists() or state.stat().st_mtime <= since:
        assert time.monotonic() < deadline, "the edge has read no file since it was started"
        time.sleep(0.02)


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
