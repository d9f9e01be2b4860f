"""Looking at a page as people do: with a browser, at some width, light or dark."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.helpers.browser import PATIENCE_MS, tab

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"


@contextmanager
def viewing(
    browser: Browser, file: Path, view: str = "", *, width: int = 1280, height: int = 900, dark: bool = False
) -> Iterator[Page]:
    """A page in a tab of its own. Afterwards: no script failed, and nothing was asked of any network."""
    wrong: list[str] = []
    with tab(browser, width, dark, height) as (page, asked):
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.goto(file.as_uri() + view)
        page.wait_for_selector("body[data-drawn=yes]")
        yield page
    assert not wrong, wrong
    assert [address for address in asked if not address.startswith(("file:", "blob:", "data:"))] == []


def wait_until(page: Page, holds: str) -> None:
    """Wait until an expression holds. The page's policy forbids what the driver's own wait does."""
    for _ in range(PATIENCE_MS // 50):
        if page.evaluate(holds):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"after {PATIENCE_MS} ms this does not hold: {holds}")


def draw_everything(page: Page) -> None:
    """Have all charts drawn: unfold what is folded, and scroll through the page."""
    page.evaluate("""async () => {
        document.querySelectorAll("main details").forEach((one) => { one.open = true; });
        for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight / 2) {
            scrollTo(0, y);
            await new Promise((next) => setTimeout(next, 50));
        }
    }""")


def downloaded(page: Page, card: str, see: str = "", button: str = "JSON") -> bytes:
    """What a download of a view of a card contains."""
    open_table(page, card, see)
    with page.expect_download() as found:
        page.locator(f"#{card} .buttons").get_by_text(button, exact=True).click()
    return Path(found.value.path()).read_bytes()


def rows(page: Page, card: str, see: str = "") -> list[dict[str, Any]]:
    """The rows of the table behind a view of a card, as they are downloaded."""
    return list(json.loads(downloaded(page, card, see))["rows"])


def open_table(page: Page, card: str, see: str = "") -> None:
    """Open the table of a view of a card: of the first one, if none is named."""
    page.locator(f"#{card}").scroll_into_view_if_needed()
    if page.locator(f"#{card} > details:not([open])").count():
        page.locator(f"#{card} summary").click()
    wait_until(page, f"document.querySelector('#{card} .chart').childElementCount > 0")
    if see:
        page.locator(f"#{card} .switch [data-see={see}]").click()
        wait_until(page, f"document.querySelector('#{card} .chart').dataset.see === '{see}'")
    if page.locator(f"#{card} [data-see=table][aria-pressed=false]").count():
        page.locator(f"#{card} [data-see=table]").click()
    page.wait_for_selector(f"#{card} .buttons")


def problems(page: Page) -> list[str]:
    """What axe-core finds serious or critical on the page. Skips the test where axe-core is not installed."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (run: npm ci, in tests/pages)")
    draw_everything(page)
    page.evaluate(AXE.read_text())  # the page's policy takes no other scripts, but a debugger may
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]
