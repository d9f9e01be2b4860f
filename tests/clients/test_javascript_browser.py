"""The JavaScript library in a real browser: databases of earlier releases."""

import pytest

from tests.clients.test_crashes import PAGE_SECONDS, serving
from tests.helpers.browser import open_browser


@pytest.mark.long(part="clients")
def test_a_database_of_release_0_2_keeps_its_memos_and_loses_the_keys_of_periods() -> None:
    with serving([]) as address, open_browser() as browser:
        page = browser.new_page()
        with page.expect_request("**/done", timeout=1000 * PAGE_SECONDS) as told:
            page.goto(f"{address}/tests/upgrade.html")
        outcome = told.value.post_data
    assert outcome == "48 memos, wrong: none, format 4, 0 keys of periods"
