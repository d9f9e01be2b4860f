"""A real browser, the one that is installed on this machine, and pages in it."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.helpers.node import LIBRARY

PATIENCE_MS = 120_000
"""How long a test waits for something on a page. Playwright's own limit for `expect` is five seconds."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str:
    """The program. Skips the test where there is none."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found (looked for {', '.join(BROWSERS)})")
    return browser


def events_in(page: str) -> list[Any]:
    """The events that a static page shows."""
    _, _, rest = page.partition('<script id="events" type="application/json">')
    return list(json.loads(rest.partition("</script>")[0]))


class Files(SimpleHTTPRequestHandler):
    """Serves the files of a directory, and says nothing."""

    directory: Path | str = LIBRARY

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, directory=str(type(self).directory))

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def open_browser() -> Iterator[Browser]:
    """The browser, driven by a test. Names of hosts are not resolved: nothing outside this machine is reached."""
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=arguments)
        yield browser
        browser.close()


@contextmanager
def tab(browser: Browser, width: int = 1280, dark: bool = False, height: int = 900) -> Iterator[tuple[Page, list[str]]]:
    """An empty page with cookies of its own, and where it sends requests to. Afterwards: no script has failed."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", accept_downloads=True
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    wrong: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: asked.append(request.url))
    yield page, asked
    context.close()
    assert not wrong, wrong
