"""A real browser: the one that is installed on this machine."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

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


@contextmanager
def open_browser() -> Iterator[Browser]:
    """The browser, driven by a test. Names of hosts are not resolved: nothing outside this machine is reached."""
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=arguments)
        yield browser
        browser.close()
