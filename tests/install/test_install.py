"""The wheel alone and with each extra, and five people with what `make dist` makes, away from the clone."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hearsay.cli import COMMANDS
from hearsay.extras import OF_COMMANDS, OF_PACKAGES
from servers.distribution import DISTRIBUTION, pip_install
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
TEXTS = {".py", ".md", ".toml", ".txt", ".sh", ".yaml", ".json", ".ipynb", ".js", ".html", ".cfg", ""}
STRANGERS = re.compile(r"(pip install ([^\n`]*['\" ])?hearsay(?![-_\w/.])|(?<![\w-])hearsay\[)")
COMMIT_OF_0_2 = "bbf08069f809e728f9c03d91cfe6bcc808b38bb9"
long = pytest.mark.long(part="install")


def test_nothing_says_to_install_the_program_of_somebody_else() -> None:
    """On the public index, `hearsay` is a stranger's. What the changelog says of versions before stays as it was."""
    listed = done("git", "ls-files", directory=ROOT).splitlines()
    texts = [ROOT / name for name in listed if name != "CHANGELOG.md" and Path(name).suffix in TEXTS]
    assert len(texts) > 500
    for path in texts:
        found = STRANGERS.search(path.read_text("utf-8"))
        assert found is None, f"{path} says {found}: it is called {DISTRIBUTION}"
    former = "hearsay"
    assert STRANGERS.search(f"pip install -U '{former}[run]'"), "the search finds what it looks for"
    assert STRANGERS.search(f"pip install {former}")


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
        assert pip_install(extra) in refused.stderr
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


@long
def test_an_environment_of_version_0_2_is_told_how_to_change_the_name(uv: Path, dist: Path, tmp_path: Path) -> None:
    """Both wheels own the same files. To follow the hint leaves the new one whole."""
    former = wheel_of_0_2(tmp_path)
    environment = tmp_path / "environment"
    done(uv, "venv", "--quiet", "--seed", "--python", sys.executable, environment)
    pip = environment / "bin/pip"
    constraints = ("--quiet", "--disable-pip-version-check", "--constraint", ROOT / "constraints.txt")
    done(pip, "install", *constraints, former)
    (wheel,) = dist.glob("hearsay_ldp-*.whl")
    done(pip, "install", *constraints, wheel)
    command = environment / "bin/hearsay"
    started = subprocess.run([command, "version"], capture_output=True, text=True, timeout=60, check=True)
    assert "hearsay 0.2.0 is installed here, too: an older version of this program" in started.stderr
    doctor = subprocess.run([command, "doctor", "--json"], capture_output=True, text=True, timeout=60, check=False)
    findings = {finding["what"]: finding for finding in json.loads(doctor.stdout)["findings"]}
    assert doctor.returncode == 1 and not findings["installation"]["ok"]
    for told in re.findall("`(pip .*?)`", findings["installation"]["advice"]):
        program, *words = shlex.split(told)
        done(environment / "bin" / program, *words)
    started = subprocess.run([command, "version"], capture_output=True, text=True, timeout=60, check=True)
    assert started.stderr == ""
    done(command, "survey", "new", "survey.yaml", "--example", "telemetry", directory=tmp_path)
    done(command, "plan", "survey.yaml", directory=tmp_path)


def wheel_of_0_2(directory: Path) -> Path:
    """Built of the last commit at which the distribution was called `hearsay`."""
    known = subprocess.run(["git", "cat-file", "-e", COMMIT_OF_0_2], cwd=ROOT, capture_output=True, check=False)
    if known.returncode:
        pytest.skip("this clone does not have the commit of version 0.2")
    source = directory / "source"
    done("git", "clone", "--quiet", "--shared", "--no-checkout", ROOT, source)
    done("git", "checkout", "--quiet", COMMIT_OF_0_2, directory=source)
    done(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", directory, source)
    (wheel,) = directory.glob("hearsay-0.2.0-*.whl")
    return wheel
