"""A real browser that a test drives. It has no network but this machine's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page, Request, sync_playwright

from tests.helpers.browser import find_browser

PATIENCE_MS = 30_000
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this machine. Skips the test where there is none."""
    program = find_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Witness:
    """Notes what goes wrong in the pages of a context, and where they send requests to."""

    def __init__(self, context: BrowserContext) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        context.on("page", self._watch)
        context.on("request", self._note)

    def _watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(f"a dialog: {dialog.message}"))

    def _note(self, request: Request) -> None:
        self.requests.append(request.url)


@contextmanager
def tab(browser: Browser, **options: object) -> Iterator[tuple[Page, Witness]]:
    """An open page in a context of its own, and its witness. At the end nothing may have gone wrong in it."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    witness = Witness(context)
    try:
        yield context.new_page(), witness
        assert not witness.errors
    finally:
        context.close()
