"""Pictures of pages for README and docs: `python scripts/pictures.py REPORT.html AUDIT.html DIRECTORY`.

A browser of this machine takes them, 1100 pixels wide: the top of the report, one of its questions, and the audit.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH = 1100


def picture(page: Page, file: Path, into: Path, height: int, first: str = "body") -> None:
    """The page from the beginning of one of its parts on, so high."""
    page.goto(file.resolve().as_uri())
    page.wait_for_selector("body[data-drawn=yes]")
    for part in page.locator(".chart").all():  # drawn when it is seen
        if part.is_visible():
            part.scroll_into_view_if_needed()
    page.add_style_tag(content="nav { position: static !important; }")
    top = page.locator(first).evaluate("part => part.getBoundingClientRect().top + scrollY")
    clip = {"x": 0, "y": max(0, top), "width": WIDTH, "height": height}
    page.screenshot(path=into, full_page=True, clip=clip)  # type: ignore[arg-type]


def main(report: str, audit: str, directory: str) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as driver:
        page = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
            viewport={"width": WIDTH, "height": 900}
        )
        into = Path(directory)
        picture(page, Path(report), into / "report.png", 1260)
        picture(page, Path(report), into / "answers.png", 480, "#answers-visit_duration")
        picture(page, Path(audit), into / "audit.png", 1180)


if __name__ == "__main__":
    main(*sys.argv[1:])
