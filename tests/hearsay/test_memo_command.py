"""`hearsay memo`, as people and programs see it."""

import json
from pathlib import Path

import numpy as np
import pytest
import redis
from typer.testing import CliRunner

from hearsay.commands.operations.memo import app
from memo_store.store import MemoStore
from protocols.errors import HistoryLost, SettingsError, StoreError
from servers.redis_server import local
from tests.memo_store.surveys import devices, respondent

CAPPED = respondent(terms="memo_cap: 2,")


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A Redis with 100 devices that have one memo and 20 that have two, their cap. Two surveys ask the same."""
    with local(tmp_path / "redis") as server, MemoStore(server.url) as store:
        store.confirm_history()
        memos, question = store.survey(CAPPED), CAPPED.scheme.questions[0]
        memos.lookup(question, devices(120), np.zeros(120, dtype=np.int64), 0)
        memos.lookup(question, devices(20), np.ones(20, dtype=np.int64), 1)
        again = store.survey(respondent(id="again", terms="minimum: 5,"))
        again.lookup(question, devices(120), np.zeros(120, dtype=np.int64), 0)
    return str(tmp_path)


def test_people_and_programs_see_who_has_spent_what(data: str) -> None:
    shown = CliRunner().invoke(app, ["stats", "--data", data], catch_exceptions=False).output
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
    read = json.loads(CliRunner().invoke(app, ["stats", "--data", data, "--json"], catch_exceptions=False).stdout)
    (survey,) = (each for each in read["surveys"] if each["survey"] == "visits")
    assert (survey["survey"], survey["at_cap"], survey["spent"]) == ("visits", {"area": 20}, [])
    (question,) = read["questions"]
    assert (question["surveys"], question["memos"]) == (["again", "visits"], {"area": 140})
    assert question["spent"] == [[pytest.approx(2.0), 100], [pytest.approx(4.0), 20]]


def test_an_operator_accepts_a_loss(data: str) -> None:
    with local(Path(data) / "redis") as server, MemoStore(server.url) as store:
        with redis.Redis.from_url(server.url) as client:
            client.flushall()
        with pytest.raises(HistoryLost):
            store.survey(CAPPED)
    refused = CliRunner().invoke(app, ["accept-loss", "--data", data], input="n\n")
    assert refused.exit_code == 1
    assert "not confirmed" in CliRunner().invoke(app, ["stats", "--data", data]).output
    assert "it has lost data" not in CliRunner().invoke(app, ["stats", "--data", data]).output
    assert CliRunner().invoke(app, ["accept-loss", "--data", data, "--yes"]).exit_code == 0
    with local(Path(data) / "redis") as server, MemoStore(server.url) as store:
        store.survey(CAPPED)
    shown = " ".join(CliRunner().invoke(app, ["stats", "--data", data]).output.split())
    assert "it has lost data: no memo_cap bounds" in shown
    assert "memo_cap bounds nothing" in shown
    late = CliRunner().invoke(app, ["accept-loss", "--data", data, "--nothing-lost"])
    assert isinstance(late.exception, StoreError)


def test_an_operator_declares_a_new_redis_to_be_new(tmp_path: Path) -> None:
    declared = CliRunner().invoke(app, ["accept-loss", "--data", str(tmp_path), "--nothing-lost"])
    assert declared.exit_code == 0 and "The history is confirmed" in declared.output
    with local(tmp_path / "redis") as server, MemoStore(server.url) as store:
        store.survey(CAPPED)
        assert not store.has_lost_data


def test_a_directory_that_is_not_there_is_not_made_and_no_redis_is_left_in_one(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for directory, what in ((missing, "no data directory"), (tmp_path, "has no memo store")):
        with pytest.raises(SettingsError, match=what):
            CliRunner().invoke(app, ["stats", "--data", str(directory)], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []
