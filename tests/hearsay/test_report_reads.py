"""What `hearsay report` reads, counted: every result once, and no more results than the output needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hearsay.cli import app
from tests.helpers.forging import collect
from tests.helpers.surveys import of_size, scheme_with
from views import reading

PERIODS = 3


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("collected")
    scheme = scheme_with(of_size(4, "few"), id="counted", eps_inf=4.0, eps_1=2.0, clock="source", horizon=3)
    collect(directory, scheme, 200, PERIODS)
    return directory


@pytest.mark.parametrize("form", [None, "json", "csv", "parquet"])
def test_a_report_decodes_each_mobility_report_and_the_newest_status_once(
    form: str | None, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[str] = []
    original = reading.decode_result

    def counted(topic: Any, *arguments: Any) -> Any:
        decoded.append(topic.kind)
        return original(topic, *arguments)

    monkeypatch.setattr(reading, "decode_result", counted)
    options = {None: [], "json": ["--json"]}.get(form, [f"--{form}", str(tmp_path)])
    CliRunner().invoke(app, ["report", "--data", str(data), *options], catch_exceptions=False)
    assert sorted(decoded) == ["live"] + ["mobility"] * PERIODS
