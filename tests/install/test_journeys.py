"""Five people and what they do, with what `make dist` makes, away from the clone.

A journey is a page whose commands are run as shown, or a script. A new command of theirs belongs in the script.
"""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Page
from tests.docs.test_commands import KAFKA, run_page, run_script
from tests.install.conftest import Install, done

pytestmark = pytest.mark.long(part="install")
JOURNEYS = Path(__file__).parent / "journeys"
NOTEBOOK = """
import doctest, sys
flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
outcome = doctest.testfile("page.txt", module_relative=False, optionflags=flags)
sys.exit(outcome.failed or not outcome.attempted)
"""


def workplace(directory: Path, environment: Path) -> Path:
    """A directory with nothing of the clone in it but the examples and pages that people are shown."""
    for name in ("examples", "docs", "clients"):
        (directory / name).symlink_to(ROOT / name)
    (directory / ".venv").symlink_to(environment)
    return directory


def test_a_city_counts_its_events_and_its_devices(install: Install, tmp_path: Path) -> None:
    place = workplace(tmp_path, install("run"))
    run_page(Page(ROOT / "docs/first-hour.md"), place, outputs(place))


@pytest.mark.parametrize("_", [pytest.param(None, marks=KAFKA)])
def test_an_operator_runs_a_cluster(install: Install, tmp_path: Path, _: None) -> None:
    place = workplace(tmp_path, install("all"))
    try:
        run_page(Page(ROOT / "docs/collecting.md"), place, outputs(place))
    finally:
        done(place / ".venv/bin/hearsay", "stack", "down", directory=place)


def test_an_officer_plans_audits_and_signs_a_dossier(install: Install, tmp_path: Path) -> None:
    place = workplace(tmp_path, install("lab"))
    assert run_script(f"set -euo pipefail\n. .venv/bin/activate\n. {JOURNEYS}/officer.sh", place) == 0
    assert "age" in (place / "plan.json").read_text() and (place / "audit.html").stat().st_size > 100_000


def test_a_notebook_computes_what_the_page_shows(install: Install, tmp_path: Path) -> None:
    place = workplace(tmp_path, install("run"))
    (place / "page.txt").write_text((ROOT / "docs/library.md").read_text().replace("```", ""))
    done(place / ".venv/bin/python", "-c", NOTEBOOK, directory=place)


def test_an_app_sends_with_both_libraries_to_a_collector(
    install: Install, uv: Path, dist: Path, tmp_path: Path
) -> None:
    if shutil.which("npm") is None:
        pytest.skip("there is no npm here")
    place, app = workplace(tmp_path, install("run")), tmp_path / "app"
    done(uv, "venv", "--quiet", app)
    (wheel,) = dist.glob("hearsay_device-*.whl")
    done(uv, "pip", "install", "--quiet", "--python", app / "bin/python", wheel)
    today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z")
    (place / "lunch.yaml").write_text((JOURNEYS / "lunch.yaml").read_text().replace("TODAY", today))
    given = f"DIST={dist}\nPYTHON={app}/bin/python\n. .venv/bin/activate\n. {JOURNEYS}/app.sh >app.log"
    assert run_script(f"set -euo pipefail\n{given}", place) == 0
    assert (place / "app.log").read_text().split() == ["reported", "reported"]


def outputs(place: Path) -> Path:
    made = place / "outputs"
    made.mkdir()
    return made
