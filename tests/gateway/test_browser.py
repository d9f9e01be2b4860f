"""Real browsers: a page of another origin that reports through CORS, and the device at `/try`."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from gateway.service import Senders
from hearsay.serving.try_page import try_pages
from lab.auditing.gateways import served
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.gateway.clients import credentials
from tests.gateway.forked import Forked
from tests.gateway.world import SCHEME, KeepingLog, Moment, embedded, key_of, serving
from tests.helpers.browser import PATIENCE_MS, open_browser
from tests.helpers.node import LIBRARY

NOW = "2026-01-01T12:00:00Z"


@pytest.fixture
def page() -> Iterator[Page]:
    with open_browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        yield page


@contextmanager
def site() -> Iterator[str]:
    """A site with the device library, at an origin of its own."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(LIBRARY))

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler) as address:
        yield address


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
    with site() as named, site() as other:
        log = KeepingLog()
        senders = Senders(key_of, lambda: tokens)
        with serving(log, senders=senders, origins=[named]) as served:
            gateway = f"http://127.0.0.1:{served.port}"
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
