"""What people get who write `import hearsay`: its names, surveys and plans."""

from __future__ import annotations

import subprocess
import sys
import typing
from pathlib import Path

import pytest

import hearsay
from protocols.errors import SurveyError
from tests.docs.pages import ROOT
from tests.hearsay.library.surveys import survey

NAMES = {
    "Device", "Fleet", "HearsayError", "Limits", "Survey", "estimate", "estimate_counts", "evaluate", "load_survey",
    "plan", "read_results", "run", "synthesize",
}  # fmt: skip
HEAVY = {"numpy", "pydantic", "kafka", "pyarrow", "redis", "faust", "typer", "rich"}


def test_these_are_the_names_and_each_is_explained() -> None:
    assert set(hearsay.__all__) == set(dir(hearsay)) == NAMES
    for name in NAMES:
        found = getattr(hearsay, name)
        assert found.__doc__ and "BaseModel" not in found.__doc__, name
        assert name in (ROOT / "docs" / "library.md").read_text(), name
    assert "return" in typing.get_type_hints(hearsay.estimate)


@pytest.mark.parametrize("name", ["estimates", "_MODULE"])
def test_a_name_that_there_is_not_is_refused_as_by_any_module(name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        getattr(hearsay, name)


def test_importing_it_imports_nothing_heavy() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", "import hearsay, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    ).stdout.split()
    assert "hearsay" in listed
    assert not {name.partition(".")[0] for name in listed} & (HEAVY | {"protocols", "analytics"})


def test_a_type_checker_knows_every_name(tmp_path: Path) -> None:
    """With the settings of the project, whose check of the whole project has left most of the answer in the cache."""
    program = tmp_path / "program.py"
    program.write_text("import hearsay\n" + "".join(f"reveal_type(hearsay.{n})\n" for n in NAMES) + "hearsay.estimates")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", str(program)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    ).stdout.splitlines()  # fmt: skip
    revealed = [line.partition("Revealed type is ")[2] for line in checked if "Revealed type" in line]
    assert len(revealed) == len(NAMES) and not any(kind == '"Any"' for kind in revealed)
    (error,) = [line.partition(": error: ")[2] for line in checked if ": error: " in line]
    assert error == 'Module has no attribute "estimates"; maybe "estimate"?  [attr-defined]'


def test_a_survey_is_read_from_a_file_or_from_text(tmp_path: Path) -> None:
    text = "id: s\nstart: 2026-01-01T00:00:00Z\nperiod: 1d\neps: 1\nattributes: [{name: a, values: [x, y]}]\n"
    (tmp_path / "survey.yaml").write_text(text)
    from_text, from_path = hearsay.load_survey(text), hearsay.load_survey(tmp_path / "survey.yaml")
    assert from_text == from_path == hearsay.load_survey(str(tmp_path / "survey.yaml"))
    with pytest.raises(SurveyError, match=r"nowhere\.yaml cannot be read"):
        hearsay.load_survey("nowhere.yaml")


def test_a_plan_is_what_the_command_shows() -> None:
    drawn = hearsay.plan(survey(), devices=500, error=0.02)
    assert (drawn.survey, drawn.devices, drawn.error) == ("buttons", 500, 0.02)
