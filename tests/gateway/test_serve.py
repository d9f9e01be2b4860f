"""A served survey: kills, its dashboard, and devices in browsers."""

import json
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, expect

from gateway.service import Senders
from hearsay.data_directory import DataDirectory
from hearsay.serving import embedded_log
from hearsay.serving.embedded_log import EmbeddedLog, serve_surveys
from hearsay.serving.running import Exposure
from hearsay.serving.try_page import try_pages
from protocols.errors import SurveyError
from protocols.planning import error_of_usual_noise
from protocols.scheme import Scheme
from protocols.survey_text import format_survey, parse_survey
from stream_app.local.log import LocalLog
from tests.gateway import world
from tests.gateway.clients import Crowd, credentials, join
from tests.gateway.forked import Forked
from tests.gateway.world import SCHEME, KeepingLog, Moment, embedded, key_of, serving
from tests.helpers.browser import Files, tab
from tests.helpers.command_line import done
from tests.helpers.eventually import eventually
from tests.helpers.loopback import served
from views.local import collector
from views.reading import Results

KILLS, CLIENTS, REPORTS = 4, 8, 400
SURVEY = """
id: buttons
start: {start}
period: 4s
grace: 2s
eps_inf: 4
eps_1: 2
horizon: 7
minimum: 0
attributes:
  - {{name: colour, values: [red, green, blue]}}
"""
SHOWN = 40
LIMITS = """
import resource
from gateway.http import most_connections
from protocols.errors import ServerError
resource.setrlimit(resource.RLIMIT_NOFILE, (512, 4096))
print(most_connections(), resource.getrlimit(resource.RLIMIT_NOFILE))
resource.setrlimit(resource.RLIMIT_NOFILE, (250, 250))
try:
    most_connections()
except ServerError as error:
    print(error)
"""


def reports_of(scheme: Scheme, count: int) -> Iterator[dict[str, object]]:
    """Reports of the period that it is now; some cannot be counted."""
    random = Random(1)
    for _ in range(count):
        gap = random.choice(["0001", "0002", "0007"]) if random.random() < 0.95 else "0009"
        answers, period = {"colour": f"0{random.randrange(3)}"}, scheme.survey.period_of(datetime.now(UTC))
        yield world.report(scheme, period, gap=gap, answers=answers)


def counted_in(log: Path) -> dict[int, dict[int, tuple[int, int]]]:
    """What the log says, read without the app: the gap and the answer of each token in each period, until it closed."""
    found: dict[int, dict[int, tuple[int, int]]] = {}
    through, reader = -1, LocalLog(log, 0)
    for record in reader.unread:
        if str(record.content_type).endswith("clock+json"):
            through = max(through, json.loads(record.value or b"")["through"])
            continue
        table = pa.ipc.open_stream(record.value).read_all()
        period = int(table.schema.metadata[b"period"].decode(), 16)
        if period > through:
            for token, gap, colour in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
                found.setdefault(period, {}).setdefault(token, (gap, colour))
    reader.close()
    return found


def test_what_was_confirmed_is_counted_once_after_every_kill(tmp_path: Path) -> None:
    """Failure would look like: a confirmed report that no final has, or a final with more than the log."""
    text = SURVEY.format(start=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    file, data = tmp_path / "survey.yaml", tmp_path / "data"
    file.write_text(text)
    scheme, random = Scheme(parse_survey(text)), Random(7)
    with Forked(tmp_path / "serve.log", "serve", str(file), "--data", str(data)).serving() as server:
        crowd = Crowd([server.port], reports_of(scheme, REPORTS), pause=0.02)
        threads = crowd.start(CLIENTS)
        for _ in range(KILLS):
            time.sleep(random.uniform(0.0, 0.2))
            server.kill()
            server.start().wait_until_ready()
        join(threads)
        assert server.leave() == 0, server.log.read_text()
    end = datetime.now(UTC).timestamp() + 3600
    directory = DataDirectory(data)
    keys = directory.clock_key(), directory.presence_key()
    with collector(directory.collector, [scheme.survey], *keys) as app:
        EmbeddedLog(app, [scheme.survey], now=lambda: end, elapsed=count(step=3600).__next__)  # nobody reports any more
        finals = {final.period: final for final in Results(app.store).histograms("buttons")}
    counted = counted_in(directory.collector / "log" / "0.log")
    sent = {int(str(report["token"]), 16): report for report in crowd.sent}
    assert {json.loads(body)["reason"] for _, body in crowd.others} == {"bad-gap"}
    assert len(crowd.taken) > REPORTS // 2
    for report in crowd.taken:
        assert int(report["token"], 16) in counted[int(report["period"], 16)]
    for period, rows in counted.items():
        for token, (gap, colour) in rows.items():  # nothing but what devices sent, as they sent it
            report = sent[token]
            answer = int(report["answers"]["colour"], 16)
            assert (int(report["period"], 16), int(report["gap"], 16), answer) == (period, gap, colour)
        final = finals[period]
        (statistics,) = [attribute.statistics for attribute in final.attributes]
        assert statistics is not None and statistics.supports is not None
        assert final.n == len(rows)
        totals = [sum(colour == value for _, colour in rows.values()) for value in range(3)]
        assert statistics.supports.sum(axis=0).tolist() == totals
    assert sum(final.n for final in finals.values()) == sum(map(len, counted.values()))


def test_results_of_a_served_survey_are_on_its_dashboard_while_it_collects(tmp_path: Path) -> None:
    text = SURVEY.format(start=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    file, log = tmp_path / "survey.yaml", tmp_path / "serve.log"
    file.write_text(text)
    with Forked(log, "serve", str(file), "--data", str(tmp_path / "data")).serving() as server:
        eventually(lambda: "Results as they come: " in log.read_text())
        (address,) = re.findall(r"Results as they come: (\S+)", log.read_text())
        for thread in Crowd([server.port], reports_of(Scheme(parse_survey(text)), SHOWN)).start(2):
            thread.join(60)
        eventually(lambda: rows(f"{address}download/buttons/histograms.csv") >= 3)
        assert server.leave() == 0, log.read_text()


def rows(table: str) -> int:
    """The rows of a table that the dashboard offers."""
    try:
        with urllib.request.urlopen(table, timeout=30) as answer:
            return len(answer.read().splitlines()) - 1
    except urllib.error.HTTPError:
        return 0  # nothing is final yet


def test_the_soft_limit_is_raised_to_the_hard_one_and_too_few_are_named() -> None:
    raised, refused = done(sys.executable, "-c", LIMITS).splitlines()
    assert raised == "3896 (4096, 4096)"
    assert re.match("250 file descriptors are too few .*ulimit", refused)


def test_a_survey_that_names_no_minimum_is_not_served_and_0_is_written_where_it_is_meant(tmp_path: Path) -> None:
    text = SURVEY.format(start="2026-01-01T00:00:00Z")
    unnamed = parse_survey(text.replace("minimum: 0\n", ""))
    with pytest.raises(SurveyError, match="names no minimum") as refused:
        serve_surveys([Scheme(unnamed)], tmp_path / "data", Exposure("127.0.0.1", 0), print)
    assert "minimum: 20" in str(refused.value.hint) and not (tmp_path / "data").exists()
    assert "\n# minimum: 0\n" in format_survey(unnamed)
    assert "\nminimum: 0\n" in format_survey(parse_survey(text))
    assert Scheme(unnamed).fingerprint == Scheme(parse_survey(text)).fingerprint


def test_version_3_has_no_default_of_what_is_published_of_presence(tmp_path: Path) -> None:
    """The refusal has both lines, with the noise of this survey."""
    text = SURVEY.format(start="2026-01-01T00:00:00Z").replace("minimum: 0\n", "")
    neither = parse_survey(text.replace("horizon:", "lookback:"), version=3)
    with pytest.raises(SurveyError, match="does not say whether") as refused:
        serve_surveys([Scheme(neither)], tmp_path / "data", Exposure("127.0.0.1", 0), print)
    hint = str(refused.value.hint)
    assert "presence_epsilon: 1 " in hint and "publish_from: 20 " in hint
    assert f"± {error_of_usual_noise(neither):,} devices" in hint


def test_with_noise_on_presence_no_minimum_is_asked_for() -> None:
    text = SURVEY.format(start="2026-01-01T00:00:00Z").replace("minimum: 0\n", "presence_epsilon: 1\n")
    embedded_log._require_decided_presence(parse_survey(text))


NOW = "2026-01-01T12:00:00Z"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with tab(browser) as (page, _):
        yield page


SEND = """async ([gateway, now, bearer]) => {
  const { Device } = await import("/device.js");
  const limits = { report: 100, value: 1000, year: 1000, week: 1000 };
  const device = new Device(`device of ${bearer}`, { limits, now: () => Date.parse(now) });
  try {
    const { period } = await device.send(gateway, "buttons", { colour: "red", page: "3" }, { bearer });
    return `period ${period}`;
  } catch (error) {
    return error.message;
  }
}"""


def test_a_page_of_a_named_origin_reports_through_cors_and_others_cannot(page: Page) -> None:
    tokens = credentials(phone="device")
    with served(Files) as named, served(Files) as other:  # the device library, at two origins
        log = KeepingLog()
        senders = Senders(key_of, lambda: tokens)
        with serving(log, senders=senders, origins=[named]) as asked:
            gateway = f"http://127.0.0.1:{asked.port}"
            page.goto(f"{named}/")
            assert page.evaluate(SEND, [gateway, NOW, "phone"]) == "period 0"
            assert "credential refused" in page.evaluate(SEND, [gateway, NOW, "unknown"])
            page.goto(f"{other}/")
            assert "cannot be reached from this page" in page.evaluate(SEND, [gateway, NOW, "phone"])
    ((_, frame),) = log.decoded()
    assert len(frame) == 1 and frame.fingerprint == SCHEME.fingerprint


def test_the_device_at_try_asks_for_a_token_where_the_gateway_does(page: Page, tmp_path: Path) -> None:
    asked = parse_survey(
        f"{{id: colours, start: {datetime.now(UTC):%Y-%m-%dT00:00:00Z}, period: 7d, eps_inf: 1, eps_1: 0.5, "
        "attributes: [{name: colour, values: [red, green]}]}"
    )
    senders = Senders(key_of, lambda: credentials(phone="device"))
    schemes = {asked.id: Scheme(asked)}
    with (
        embedded(tmp_path, survey=asked) as log,
        serving(
            log, list(schemes.values()), Moment(time.time()), senders, pages=try_pages(schemes, tmp_path)
        ) as served,
    ):
        page.goto(f"http://127.0.0.1:{served.port}/try")
        expect(page.get_by_label("Token")).to_be_hidden()
        page.get_by_role("button", name="Send this report").click()
        expect(page.locator("#trouble")).to_contain_text("credential refused")
        page.get_by_label("Token").fill("phone")
        page.get_by_role("button", name="Send this report").click()
        expect(page.locator("#outcome")).to_contain_text("on its way")
        expect(page.locator("#trouble")).to_be_hidden()


def choose(page: Page, colour: str) -> None:
    """Choose an answer, and wait until the page shows what the device makes of it and of no answer before."""
    page.evaluate("document.getElementById('memo').replaceChildren()")
    page.locator("select[name=colour]").select_option(colour)
    expect(page.locator("#memo dd")).to_have_count(1)


def test_the_device_at_try_shows_the_memo_and_the_report_and_moves_the_estimate(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "survey.yaml"
    file.write_text(
        f"{{id: buttons, title: Colours, start: {datetime.now(UTC):%Y-%m-%dT00:00:00Z}, period: 7d, "
        "eps_inf: 4, eps_1: 2, minimum: 0, attributes: [{name: colour, values: [red, green, blue]}]}"
    )
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    words = ("serve", str(file), "--data", str(tmp_path / "data"))
    with Forked(tmp_path / "serve.log", *words).serving() as server:
        page.goto(f"http://127.0.0.1:{server.port}/")
        expect(page).to_have_url(f"http://127.0.0.1:{server.port}/try")
        expect(page.locator("header")).to_contain_text("It needs https or a loopback address")
        page.get_by_role("button", name="Raise the limits of this device").click()
        expect(page.locator("#costs")).to_contain_text("Device 1. ")
        expect(page.locator("#costs")).to_contain_text("88 % at most")  # e^2 / (1 + e^2)
        expect(page.locator("#costs")).to_contain_text("98 % from 2 reports and 100 % from 7 reports, at most")
        expect(page.locator("#says dd")).to_have_text(re.compile("red|green|blue"))
        choose(page, "green")
        memo = page.locator("#memo dd").inner_text()
        choose(page, "blue")
        choose(page, "green")
        assert page.locator("#memo dd").inner_text() == memo, "the same for the same answer"
        shown = json.loads(page.locator("#report").text_content() or "")
        assert shown["survey"] == "buttons"
        says = page.locator("#says dd").inner_text()
        assert shown["answers"]["colour"] == f"0{['red', 'green', 'blue'].index(says)}"
        page.get_by_role("button", name="Send this report").click()
        expect(page.locator("#outcome")).to_contain_text("on its way")
        expect(page.locator("#costs")).to_contain_text("so far: colour 98 %")
        expect(page.locator("#counted")).to_contain_text("1 report is counted")
        before = page.locator("#live table").inner_text()
        page.get_by_role("button", name="Be another device").click()
        expect(page.locator("#costs")).to_contain_text("Device 2.")
        page.get_by_role("button", name="Send this report").click()
        expect(page.locator("#counted")).to_contain_text("2 reports are counted")
        assert page.locator("#live table").inner_text() != before
        page.reload()
        expect(page.locator("#outcome")).to_contain_text("This device has reported.")
        assert server.leave() == 0, server.log.read_text()
    assert not errors
