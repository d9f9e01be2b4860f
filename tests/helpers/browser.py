"""A real browser: the one that is installed on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str:
    """The program. Skips the test where there is none."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found (looked for {', '.join(BROWSERS)})")
    return browser


@contextmanager
def open_browser() -> Iterator[Browser]:
    """The browser, driven by a test. Names of hosts are not resolved: nothing outside this machine is reached."""
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=arguments)
        yield browser
        browser.close()
