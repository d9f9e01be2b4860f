"""`hearsay serve` shows what it collects: the dashboard in the same process, on a port of its own."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hearsay.serving.embedded_log import serve_surveys
from hearsay.serving.exposure import Exposure
from protocols.errors import SurveyError
from protocols.scheme import Scheme
from protocols.survey_text import format_survey, parse_survey
from tests.gateway.clients import Crowd
from tests.gateway.forked import Forked, nursery
from tests.gateway.test_serve_killed import SURVEY, reports_of
from tests.helpers.eventually import eventually

REPORTS = 40


def test_results_of_a_served_survey_are_on_its_dashboard_while_it_collects(tmp_path: Path) -> None:
    text = SURVEY.format(start=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    file, log = tmp_path / "survey.yaml", tmp_path / "serve.log"
    file.write_text(text)
    with nursery() as parent:
        server = Forked(parent, ["serve", str(file), "--data", str(tmp_path / "data")], log).start().wait_until_ready()
        eventually(lambda: "Results as they come: " in log.read_text())
        (address,) = re.findall(r"Results as they come: (\S+)", log.read_text())
        for thread in Crowd([server.port], reports_of(Scheme(parse_survey(text)), REPORTS)).start(2):
            thread.join(60)
        eventually(lambda: rows(f"{address}download/buttons/histograms.csv") >= 3)
        assert server.leave() == 0, log.read_text()


def test_a_survey_that_names_no_minimum_is_not_served_and_0_is_written_where_it_is_meant(tmp_path: Path) -> None:
    text = SURVEY.format(start="2026-01-01T00:00:00Z")
    unnamed = parse_survey(text.replace("minimum: 0\n", ""))
    with pytest.raises(SurveyError, match="names no minimum") as refused:
        serve_surveys([unnamed], tmp_path / "data", Exposure("127.0.0.1", 0), print)
    assert "minimum: 20" in str(refused.value.hint) and not (tmp_path / "data").exists()
    assert "\n# minimum: 0\n" in format_survey(unnamed)
    assert "\nminimum: 0\n" in format_survey(parse_survey(text))
    assert Scheme(unnamed).fingerprint == Scheme(parse_survey(text)).fingerprint


def rows(table: str) -> int:
    """The rows of a table that the dashboard offers."""
    try:
        with urllib.request.urlopen(table, timeout=30) as answer:
            return len(answer.read().splitlines()) - 1
    except urllib.error.HTTPError:
        return 0  # nothing is final yet
