"""Integrity on the page of a collection: verdicts, and new arrivals beside what is usual."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from hearsay.reports.files import mobility_of, open_results
from hearsay.reports.page import write_page
from tests.helpers.forging import collect
from tests.helpers.surveys import of_size, scheme_with
from tests.pages.viewing import rows, viewing

pytestmark = pytest.mark.long(part="browser")

DEVICES, PERIODS, FORGED = 600, 5, 200


def test_forged_devices_that_arrive_as_new_leave_the_band_of_what_is_usual(browser: Browser, tmp_path: Path) -> None:
    """Everybody reports in every period, so nobody is new after the first one, until reports are forged."""
    terms = {"eps_inf": 4.0, "eps_1": 2.0, "clock": "source", "horizon": 3}
    scheme = scheme_with(of_size(12, "many", mechanism="l-osue"), id="forged", **terms)
    collect(tmp_path, scheme, DEVICES, PERIODS, forged=FORGED)
    with open_results("forged", tmp_path, None) as (results, _):
        file = tmp_path / "page.html"
        write_page(file, scheme.survey, mobility_of(results, "forged"))
    with viewing(browser, file) as page:
        arrivals, verdicts = rows(page, "arrivals"), rows(page, "integrity")
        page.wait_for_selector("#arrivals svg .odd")
    assert [row["verdict"] for row in verdicts] == ["consistent"] * (PERIODS - 1) + ["contradicted"]
    assert [(row["period"], row["new"], row["outside"]) for row in arrivals] == [
        *((period, 0, False) for period in range(1, PERIODS - 1)),
        (PERIODS - 1, FORGED, True),
    ]
