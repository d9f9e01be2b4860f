"""The wheel alone and with each extra, and five people with what `make dist` makes, away from the clone."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hearsay.cli import COMMANDS
from hearsay.extras import OF_COMMANDS, OF_PACKAGES
from tests.docs.pages import ROOT, Page
from tests.docs.test_commands import KAFKA, run_page, run_script
from tests.helpers.command_line import done
from tests.install.conftest import Install

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SIZES = {
    name: int(size)
    for name, size in re.findall(r"^\| (nothing|`\w+`) \| (\d+) \|", (ROOT / "docs/dependencies.md").read_text(), re.M)
}
MOST_ALONE = 150
FAKES = """{id: lunch, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 3, eps_1: 1,
 solution: rs+fd, guarantee: attribute,
 attributes: [{name: dish, values: [soup, salad, pasta]}, {name: drink, values: [tea, water]}]}"""
long = pytest.mark.long(part="install")


def test_every_extra_that_is_named_exists() -> None:
    assert {*OF_COMMANDS.values(), *OF_PACKAGES.values(), "all"} <= EXTRAS.keys()
    assert OF_COMMANDS.keys() <= COMMANDS.keys()


@long
@pytest.mark.skipif(sys.platform != "linux", reason="sizes are those of Linux")
@pytest.mark.parametrize("extra", SIZES)
def test_an_installation_is_as_large_as_the_page_says(extra: str, install: Install) -> None:
    assert SIZES.keys() == {"nothing", *(f"`{name}`" for name in {*OF_COMMANDS.values(), *OF_PACKAGES.values(), "all"})}
    environment = install(extra.strip("`").replace("nothing", ""))
    (packages,) = environment.glob("lib/python3*/site-packages")
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.suffix != ".pyc" and path.is_file()) / 1e6
    assert size == pytest.approx(SIZES[extra], rel=0.1)
    assert extra != "nothing" or size < MOST_ALONE


@long
def test_alone_it_plans_and_reads_and_names_the_extras_of_everything_else(install: Install, tmp_path: Path) -> None:
    alone, whole = (install(extra) / "bin" / "hearsay" for extra in ("", "run"))
    for example, file in {"demand-year": "survey.yaml", "telemetry": "telemetry.yaml"}.items():
        done(alone, "survey", "new", file, "--example", example, directory=tmp_path)
    done(alone, "survey", "check", "survey.yaml", directory=tmp_path)
    assert "feature" in done(alone, "plan", "telemetry.yaml", "--all", directory=tmp_path)  # with its central figure
    assert "area" in done(alone, "plan", "survey.yaml", directory=tmp_path)
    run = ("run", "survey.yaml", "--devices", "500", "--periods", "2", "--data", "data")
    report = ("report", "demand-year", "--data", "data")
    wanted = {
        run: "run",
        ("audit", "survey.yaml", "--devices", "100"): "lab",
        ("replay", "events.csv", "--survey", "survey.yaml"): "replay",
        ("worker",): "worker",
        ("plan", "fakes.yaml"): "lab",
        (*report, "--csv", "tables"): "tables",
        (*report, "--kafka", "127.0.0.1:1"): "kafka",
    }
    (tmp_path / "fakes.yaml").write_text(FAKES)
    done(whole, *run, directory=tmp_path)
    for words, extra in wanted.items():
        refused = subprocess.run([alone, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert refused.returncode == 1, refused.stderr
        assert f"pip install 'hearsay[{extra}]'" in refused.stderr
    assert done(alone, *report, "--json", directory=tmp_path) == done(whole, *report, "--json", directory=tmp_path)
    done(alone, *report, "--html", "report.html", directory=tmp_path)
    assert (tmp_path / "report.html").stat().st_size > 100_000


@long
def test_doctor_finds_packages_of_others_that_have_names_of_ours(install: Install, tmp_path: Path) -> None:
    doctor = install("") / "bin" / "hearsay", "doctor", "--json"
    found = {finding["what"]: finding for finding in json.loads(done(*doctor, directory=tmp_path))["findings"]}
    assert found["packages"]["ok"]
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "__init__.py").touch()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(doctor, env=environment, capture_output=True, text=True, timeout=60, check=False)
    found = {finding["what"]: finding for finding in json.loads(ran.stdout)["findings"]}
    assert ran.returncode == 1 and found["packages"]["found"] == f"views is that of {tmp_path}/views"


@long
def test_uvx_fetches_the_extra_of_a_command(uv: Path, tmp_path: Path) -> None:
    words = (uv, "tool", "run", "--from", ROOT, "hearsay", "demo", "--devices", "1000", "--data", "data")
    assert "festival-week.html" in done(*words, directory=tmp_path)


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


@long
def test_a_city_counts_its_events_and_its_devices(install: Install, tmp_path: Path) -> None:
    place = workplace(tmp_path, install("run"))
    run_page(Page(ROOT / "docs/first-hour.md"), place, outputs(place))


@long
@pytest.mark.parametrize("_", [pytest.param(None, marks=KAFKA)])
def test_an_operator_runs_a_cluster(install: Install, tmp_path: Path, _: None) -> None:
    place = workplace(tmp_path, install("all"))
    try:
        run_page(Page(ROOT / "docs/collecting.md"), place, outputs(place))
    finally:
        done(place / ".venv/bin/hearsay", "stack", "down", directory=place)


@long
def test_an_officer_plans_audits_and_signs_a_dossier(install: Install, tmp_path: Path) -> None:
    place = workplace(tmp_path, install("lab"))
    assert run_script(f"set -euo pipefail\n. .venv/bin/activate\n. {JOURNEYS}/officer.sh", place) == 0
    assert "age" in (place / "plan.json").read_text() and (place / "audit.html").stat().st_size > 100_000


@long
def test_a_notebook_computes_what_the_page_shows(install: Install, tmp_path: Path) -> None:
    place = workplace(tmp_path, install("run"))
    (place / "page.txt").write_text((ROOT / "docs/library.md").read_text().replace("```", ""))
    done(place / ".venv/bin/python", "-c", NOTEBOOK, directory=place)


@long
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
