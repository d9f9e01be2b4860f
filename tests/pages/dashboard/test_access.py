"""Who may look at a dashboard, and what its answers allow a browser to do."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from typer.testing import CliRunner

from gateway.http import Request
from hearsay.cli import app
from hearsay.commands.operations.dashboard import dashboard as dashboard_command
from pages.dashboard import Source
from pages.dashboard.access import WRONG, Access
from protocols.errors import SettingsError, SurveyError
from stream_app.local import DirectoryFollower
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.dashboards import Running, ask, dashboard

TOKEN = "a token that nobody guesses"
PATHS = ("/events", "/events?survey=colours", "/download/colours/visitors.csv")
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("colours")
    with collecting(made, small_survey()) as (colours,):
        colours.finish([30, 20, 10])
    return made


@pytest.fixture
def source(directory: Path) -> Source:
    return Source(lambda: DirectoryFollower(directory))


@pytest.fixture
def guarded(source: Source) -> Iterator[Running]:
    with dashboard(source, token=TOKEN) as running:
        yield running


def enter(running: Running, token: str) -> tuple[int, dict[str, str], bytes]:
    return ask(running, "/access", "POST", urlencode({"token": token}), Content_Type=FORM)


def test_without_the_token_there_is_only_a_form(guarded: Running) -> None:
    status, _, page = ask(guarded, "/")
    assert status == 401 and b"<form" in page and b"colours" not in page
    for path in PATHS:
        for headers in ({}, {"Cookie": "hearsay=9999999999.0"}, {"Authorization": "Bearer wrong"}):
            assert ask(guarded, path, **headers)[0] == 401


@pytest.mark.parametrize("token", ["\xff", "\xed\xa0\x80", "", "x" * 5000], ids=["ff", "half", "none", "long"])
def test_a_token_of_any_bytes_is_just_wrong(guarded: Running, token: str) -> None:
    assert ask(guarded, "/events", Authorization=f"Bearer {token}")[0] == 401
    assert ask(guarded, "/events", Cookie=f"hearsay={token}.{token}")[0] == 401
    assert ask(guarded, "/access", "POST", f"token={token}", Content_Type=FORM)[0] == 403
    assert ask(guarded, "/access", "POST", "token=%FF%ED", Content_Type=FORM)[0] == 403


def test_whoever_guesses_is_told_to_wait_and_others_go_on(guarded: Running) -> None:
    cookie = enter(guarded, TOKEN)[1]["set-cookie"].split("; ")[0]
    guesses = [ask(guarded, "/events", Authorization=f"Bearer {number}") for number in range(20)]
    assert [status for status, *_ in guesses] == [401] * WRONG.burst + [429] * (20 - WRONG.burst)
    assert int(guesses[-1][1]["retry-after"]) <= 1 / WRONG.per_second + 1
    assert enter(guarded, TOKEN)[0] == 429, "not even the right one says that it is right"
    assert ask(guarded, "/", Cookie=cookie)[0] == 200


def test_where_there_is_no_token_a_form_leads_to_the_page(source: Source) -> None:
    with dashboard(source) as running:
        status, headers, _ = enter(running, "any")
        assert (status, headers["location"]) == (303, "./") and "set-cookie" not in headers


def test_right_tokens_are_never_too_many(guarded: Running) -> None:
    for number in range(2 * WRONG.burst):
        assert ask(guarded, "/", Authorization="Bearer wrong")[0] == 401, number
        assert ask(guarded, "/", Authorization=f"Bearer {TOKEN}")[0] == 200


def test_the_token_is_exchanged_for_a_cookie_that_scripts_and_other_sites_cannot_use(guarded: Running) -> None:
    assert enter(guarded, "wrong")[0] == 403
    status, headers, _ = enter(guarded, TOKEN)
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert (status, headers["location"]) == (303, "./")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)
    assert TOKEN not in headers["set-cookie"]
    assert ask(guarded, "/", Cookie=cookie)[0] == 200
    assert ask(guarded, "/download/colours/visitors.csv", Cookie=cookie)[0] == 404  # this one has no downloads
    assert ask(guarded, "/events", Cookie=cookie[:-1])[0] == 401


def test_a_cookie_ends(guarded: Running) -> None:
    _, headers, _ = enter(guarded, TOKEN)
    cookie = headers["set-cookie"].split("; ")[0]
    request = Request("GET", "/", b"", {b"cookie": cookie.encode()}, True, None)
    assert Access(TOKEN).refusal(request) is None
    assert Access("another token, since today").refusal(request) is not None
    assert Access(TOKEN, lambda: 1e11).refusal(request) is not None


def test_a_browser_is_told_to_load_nothing_from_elsewhere(source: Source) -> None:
    with dashboard(source) as running:
        for path in ("/", "/?survey=colours", "/assets/page.js", "/assets/none", "/ready"):
            headers = ask(running, path)[1]
            assert headers["content-security-policy"].startswith("default-src 'self'; style-src 'self'")
            assert headers["x-content-type-options"] == "nosniff"
            assert "server" not in headers


def test_a_page_whose_name_was_made_to_lead_here_gets_nothing(source: Source) -> None:
    with dashboard(source, names=frozenset({"results.example"})) as running:
        assert ask(running, "/")[0] == 200
        assert ask(running, "/", Host=f"localhost:{running.port}")[0] == 200
        assert ask(running, "/", Host="results.example")[0] == 200
        for path in ("/", "/events", "/ready", "/assets/page.js", "/download/colours/visitors.csv"):
            assert ask(running, path, Host="evil.example")[0] == 421


def test_scripts_are_loaded_once(source: Source) -> None:
    with dashboard(source) as running:
        status, headers, body = ask(running, "/assets/page.js", Accept_Encoding="gzip")
        assert (status, headers["content-encoding"]) == (200, "gzip")
        assert ask(running, "/assets/page.js")[2] != body
        assert ask(running, "/assets/page.js", If_None_Match=headers["etag"])[0] == 304


def test_an_address_that_others_can_reach_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="no token is set"):
        dashboard_command(data=tmp_path, host="0.0.0.0", port=0)


def test_a_short_token_is_refused_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARSAY_DASHBOARD_TOKEN", "short")
    answer = CliRunner().invoke(app, ["dashboard", "--data", "nowhere"])
    assert isinstance(answer.exception, SettingsError)
    assert "HEARSAY_DASHBOARD_TOKEN" in str(answer.exception) and "'short'" not in str(answer.exception)
    monkeypatch.setenv("HEARSAY_DASHBOARD_TOKEN", TOKEN)
    assert TOKEN not in CliRunner().invoke(app, ["doctor", "--json"]).output


def test_an_unknown_survey_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with collecting(tmp_path / "collector", small_survey()) as _:
        pass
    with pytest.raises(SurveyError, match="known surveys: colours"):
        dashboard_command(["colors"], data=tmp_path, port=0)
    assert json.dumps([path.name for path in tmp_path.iterdir()]) == '["collector"]'
