"""A data directory uses one memo store; `hearsay memo` and results show what was spent and lost there."""

import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import redis
from typer.testing import CliRunner, Result

from bench._processes import ServerProcess
from hearsay.cli import app
from hearsay.data_directory import DataDirectory
from hearsay.library.results import read_results
from hearsay.running import collecting
from hearsay.running.simulating import populate
from memo_store.store import MemoStore
from producers.simulation import Simulation
from protocols.errors import HistoryLost, SettingsError, StoreError
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.redis_server import RedisServer, local
from servers.settings import load
from stream_app.local import LocalStore
from tests.helpers.command_line import done
from tests.helpers.eventually import eventually
from tests.memo_store.surveys import devices, respondent
from views.reading import Results

SURVEY = (
    "{id: cdr, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, horizon: 7, eps_inf: 2, eps_1: 1, %s"
    " attributes: [{name: area, values: [north, south]}]}"
)
CAPPED, UNCAPPED = SURVEY % "memo_cap: 1,", SURVEY % ""
PEOPLE = 40


def type_in(*words: str, url: str | None = None) -> Result:
    return CliRunner().invoke(app, words, env={"HEARSAY_REDIS_URL": url, "COLUMNS": "200"})


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Events of two days, and the words to replay them."""
    monkeypatch.chdir(tmp_path)
    Path("survey.yaml").write_text(CAPPED)
    rows = [f"{p},2026-01-0{d}T12:00:00Z,{('north', 'south')[p % 2]}" for d in (1, 2) for p in range(PEOPLE)]
    Path("events.csv").write_text("\n".join(["person,time,area", *rows, ""]))
    return ["replay", "events.csv", "--survey", "survey.yaml", "--until", "2026-02-01T00:00:00Z", "--data", "data"]


def visitors() -> list[int | None]:
    with closing(LocalStore.existing(Path("data/collector"))) as store:
        return [final.n for final in Results(store).histograms("cdr")]


def sent() -> int:
    return sum(file.stat().st_size for file in Path("data/collector/log").glob("*.log"))


def test_a_replay_without_the_redis_of_the_one_before_is_refused_before_anything_is_sent(
    events: list[str], redis_url: str
) -> None:
    """A failure would be a second memo for every device, and every visitor counted twice."""
    with MemoStore(redis_url) as store:
        store.accept_loss()
    assert type_in(*events, url=redis_url).exit_code == 0
    before = sent()
    Path("events.csv").write_text(Path("events.csv").read_text().replace("north", "south"))
    refused = type_in(*events)
    assert isinstance(refused.exception, SettingsError)
    assert "have their memos in unix://" in str(refused.exception)
    assert "HEARSAY_REDIS_URL is not set (set HEARSAY_REDIS_URL as before" in str(refused.exception)
    assert not Path("data/redis").exists() and sent() == before
    assert visitors() == [PEOPLE, PEOPLE]
    assert type_in(*events, url=redis_url).exit_code == 0
    assert visitors() == [PEOPLE, PEOPLE]
    with MemoStore(redis_url) as store:
        assert store.stats().questions[0].memos == {"area": PEOPLE}


def test_a_redis_is_refused_for_a_directory_that_has_its_own(events: list[str], redis_url: str) -> None:
    assert type_in(*events).exit_code == 0
    refused = type_in(*events, url=redis_url)
    assert isinstance(refused.exception, SettingsError)
    assert "have their memos in its own Redis, and HEARSAY_REDIS_URL names unix://" in str(refused.exception)
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
    assert type_in(*events).exit_code == 0


def test_another_redis_is_refused_stats_name_the_store_and_its_address_may_change(
    events: list[str], redis_url: str
) -> None:
    Path("survey.yaml").write_text(UNCAPPED)
    assert type_in(*events, url=redis_url).exit_code == 0
    assert isinstance(type_in(*events, url=redis_url.replace("db=0", "db=1")).exception, SettingsError)
    refused = type_in("memo", "stats", "--data", "data")
    assert isinstance(refused.exception, SettingsError)
    assert f"memos in {redis_url.partition('?')[0]}, and HEARSAY_REDIS_URL is not set" in str(refused.exception)
    for words in (["--data", "data"], []):
        shown = json.loads(type_in("memo", "stats", "--json", *words, url=redis_url).stdout)
        assert shown["questions"][0]["memos"] == {"area": PEOPLE}
    assert not Path("hearsay-data").exists()
    assert type_in(*events, url=f"{redis_url}&client_name=other").exit_code == 0


@pytest.fixture
def collected(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Collect some periods of a simulated survey in a data directory, with the shared Redis."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEARSAY_REDIS_URL", redis_url)

    def collect(periods: range, text: str = UNCAPPED, meanwhile: Callable[[], object] = lambda: None) -> None:
        survey = parse_survey(text)
        with collecting.collect(DataDirectory(Path("data")), survey, load(), None) as to:
            fleet = Simulation(to.memos, to.sink, populate(survey, "telemetry", PEOPLE, 6, 0), to.clock_key)
            meanwhile()
            fleet.run(periods)

    return collect


def flush(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.flushall()


def marked() -> set[tuple[int, int]]:
    """The windows that are marked, in the report, the page and the library alike."""
    shown = json.loads(type_in("report", "--data", "data", "--json").stdout)
    found = {(window["first"], window["last"]) for window in shown["windows"] if window["presence_lost"]}
    listed = read_results("data").everything["visitors"].to_pylist()
    assert {(row["first"], row["last"]) for row in listed if row["presence_lost"]} == found
    assert type_in("report", "--data", "data", "--html", "page.html").exit_code == 0
    printed = " ".join(type_in("report", "--data", "data").output.split())
    assert ("presence records were lost" in printed) == bool(found)
    assert ('"presence_lost":true' in Path("page.html").read_text().replace(": ", ":")) == bool(found)
    return found


def stated() -> list[float]:
    """Between any two histories of ten linked reports: what the report and the plan of the directory state."""
    Path("survey.yaml").write_text(CAPPED)
    report = json.loads(type_in("report", "--data", "data", "--json").stdout)["guarantees"]
    planned = CliRunner().invoke(app, ["plan", "survey.yaml", "--data", "data", "--json"]).stdout
    assert report["any_without_cap"] is None or report["any_without_cap"]["10"] != report["any"]["10"]
    return [report["any"]["10"]["whole"], json.loads(planned)["guarantee"]["any"]["10"]["whole"]]


def test_a_store_that_was_emptied_between_two_runs_is_refused_until_the_loss_is_accepted_and_then_shown(
    collected: Callable[..., None], redis_url: str
) -> None:
    with MemoStore(redis_url) as store:
        store.confirm_history()
    collected(range(2), CAPPED)
    assert marked() == set()
    assert stated() == pytest.approx([2.0, 2.0], abs=1e-3)
    flush(redis_url)
    for _ in range(2):
        with pytest.raises(SettingsError, match=r"that Redis has lost them, or .*accept-loss --data data"):
            collected(range(2, 3), CAPPED)
    accepted = type_in("memo", "accept-loss", "--data", "data", "--yes", url=redis_url)
    assert accepted.exit_code == 0 and "does not have these memos" in " ".join(accepted.output.split())
    collected(range(2, 4), CAPPED)
    assert marked() == {(0, 2), (0, 3)}
    uncapped = Scheme(parse_survey(UNCAPPED)).guarantees.any(10).whole
    assert stated() == pytest.approx([uncapped, uncapped]) and uncapped is not None and uncapped > 9
    assert DataDirectory(Path("data")).presence_losses("cdr") == {2, 3}
    flush(redis_url)
    type_in("memo", "accept-loss", "--data", "data", "--yes", url=redis_url)
    collected(range(4, 5), CAPPED)
    assert DataDirectory(Path("data")).presence_losses("cdr") == {2, 3, 4, 5}


def test_a_directory_that_accepts_another_store_leaves_its_history_to_the_devices_of_others(
    collected: Callable[..., None], redis_url: str
) -> None:
    collected(range(1))
    with MemoStore(redis_url) as store:
        store.accept_loss()
    collected(range(1, 2))
    Path("data/memo.store").write_text("0123456789abcdef\nredis://gone:6379/0\n")
    with redis.Redis.from_url(redis_url) as client:
        before = client.hget("hearsay:{0}:epoch", "epoch")
        assert type_in("memo", "accept-loss", "--data", "data", "--yes", url=redis_url).exit_code == 0
        assert client.hget("hearsay:{0}:epoch", "epoch") == before
        assert type_in("memo", "accept-loss", "--data", "data", "--yes", url=redis_url).exit_code == 0
        assert client.hget("hearsay:{0}:epoch", "epoch") != before, "now it is the directory's own history"


SPENT = respondent(terms="memo_cap: 2,")


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A Redis with 100 devices that have one memo and 20 that have two, their cap. Two surveys ask the same."""
    with local(tmp_path / "redis") as server, MemoStore(server.url) as store:
        store.confirm_history()
        memos, question = store.survey(SPENT), SPENT.scheme.questions[0]
        memos.lookup(question, devices(120), np.zeros(120, dtype=np.int64), 0)
        memos.lookup(question, devices(20), np.ones(20, dtype=np.int64), 1)
        again = store.survey(respondent(id="again", terms="minimum: 5,"))
        again.lookup(question, devices(120), np.zeros(120, dtype=np.int64), 0)
    return str(tmp_path)


def test_people_and_programs_see_who_has_spent_what(data: str) -> None:
    shown = type_in("memo", "stats", "--data", data).output
    for part in (
        "append-only file, synced: always",
        "confirmed complete",
        "area: 20 devices at the cap",
        "140 memos of area, of 120 devices",
        "asked by again, visits",
        "2 (half of the devices)",
        "4 (all)",
        "upper bound",
    ):
        assert part in shown
    read = json.loads(type_in("memo", "stats", "--data", data, "--json").stdout)
    (survey,) = (each for each in read["surveys"] if each["survey"] == "visits")
    assert (survey["survey"], survey["at_cap"], survey["spent"]) == ("visits", {"area": 20}, [])
    (question,) = read["questions"]
    assert (question["surveys"], question["memos"]) == (["again", "visits"], {"area": 140})
    assert question["spent"] == [[pytest.approx(2.0), 100], [pytest.approx(4.0), 20]]


def test_an_operator_accepts_a_loss(data: str) -> None:
    with local(Path(data) / "redis") as server, MemoStore(server.url) as store:
        flush(server.url)
        with pytest.raises(HistoryLost):
            store.survey(SPENT)
    refused = CliRunner().invoke(app, ["memo", "accept-loss", "--data", data], input="n\n")
    assert refused.exit_code == 1
    assert "not confirmed" in type_in("memo", "stats", "--data", data).output
    assert "it has lost data" not in type_in("memo", "stats", "--data", data).output
    assert type_in("memo", "accept-loss", "--data", data, "--yes").exit_code == 0
    with local(Path(data) / "redis") as server, MemoStore(server.url) as store:
        store.survey(SPENT)
    shown = " ".join(type_in("memo", "stats", "--data", data).output.split())
    assert "it has lost data: no memo_cap bounds" in shown
    assert "memo_cap bounds nothing" in shown
    late = type_in("memo", "accept-loss", "--data", data, "--nothing-lost")
    assert isinstance(late.exception, StoreError)


def test_an_operator_declares_a_new_redis_to_be_new(tmp_path: Path) -> None:
    declared = type_in("memo", "accept-loss", "--data", str(tmp_path), "--nothing-lost")
    assert declared.exit_code == 0 and "The history is confirmed" in declared.output
    with local(tmp_path / "redis") as server, MemoStore(server.url) as store:
        store.survey(SPENT)
        assert not store.has_lost_data


def test_a_directory_that_is_not_there_is_not_made_and_no_redis_is_left_in_one(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for directory, what in ((missing, "no data directory"), (tmp_path, "has no memo store")):
        refused = type_in("memo", "stats", "--data", str(directory)).exception
        assert isinstance(refused, SettingsError) and what in str(refused)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long(part="kills")
def test_a_run_ends_the_redis_of_the_one_that_was_killed_before_it(tmp_path: Path) -> None:
    """Failure would look like: a server for every kill, each with the memos of the same people in memory."""
    (tmp_path / "survey.yaml").write_text(UNCAPPED)
    data = tmp_path / "data"
    words = ["run", str(tmp_path / "survey.yaml"), "--devices", "3000", "--periods", "5", "--data", str(data)]
    redis_of_the_run = RedisServer(data / "redis")
    killed = ServerProcess(tmp_path / "run.log", 0, "-m", "hearsay", *words).start()
    eventually(lambda: redis_of_the_run.running and redis_of_the_run.answers())
    killed.kill()
    left = redis_of_the_run.pid
    assert left is not None, killed.log.read_text()
    done(sys.executable, "-m", "hearsay", *words)
    assert not redis_of_the_run.running
    assert not redis_of_the_run._is_server(left)
