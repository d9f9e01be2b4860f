"""Pages of a dashboard in a browser, and what goes wrong in them."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page

from tests.helpers.browser import PATIENCE_MS


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
