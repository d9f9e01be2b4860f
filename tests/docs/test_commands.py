"""Every command that a page shows is run as shown, or held against the command line where it cannot be."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from servers.private_files import private_directory, write_private
from tests.docs.pages import INLINE, LANGUAGES, ROOT, RUNBOOKS, Block, Page, commands, pages
from tests.helpers.command_line import done, parsed, resolve

PATIENCE_SECONDS = 600
# The environment is there already, and tests cannot be run by a test of theirs: those targets are only expanded.
MAKE = """
make() {
  case "$1" in demo) command make --old-file=.venv/ready "$@" ;; *) expand "$@" ;; esac
}
expand() { command make --just-print --old-file=.venv/ready "$@"; }
"""
KAFKA = [pytest.mark.integration, pytest.mark.xdist_group("kafka")]


def runnable() -> list[Any]:
    return list(_runnable())


def _runnable() -> Iterator[Any]:
    for page in pages():
        if page.run() and page.path.parent != RUNBOOKS and not page.is_drill:
            starts_a_broker = any("hearsay stack up" in block.text for block in page.run())
            marks = [*KAFKA] if starts_a_broker else []
            if page.needs and shutil.which(page.needs) is None:
                marks.append(pytest.mark.skip(reason=f"there is no {page.needs} here"))
            yield pytest.param(page, id=str(page), marks=marks)


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A directory that looks like a clone with its environment made; what a page writes stays in it."""
    for path in ROOT.iterdir():
        if not path.name.startswith((".", "hearsay-data")):
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    # The devices of the demo that a page audits are always the same: one run of a hundred contradicts honest ones.
    demo = private_directory(tmp_path / "hearsay-data" / "demo")
    write_private(demo / "fleet.key", f"{bytes(range(32)).hex()}\n")
    (demo / "redis.new").touch()  # its store is new, though its devices are not
    yield tmp_path
    if (tmp_path / ".stack").exists():
        subprocess.run([sys.executable, "-m", "hearsay", "stack", "down"], cwd=tmp_path, check=True, timeout=240)


@pytest.mark.long(part="pages")
@pytest.mark.parametrize("page", runnable())
def test_the_commands_of_a_page_work_as_shown(
    page: Page, clone: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run_page(page, clone, tmp_path_factory.mktemp("outputs"))


def run_page(page: Page, directory: Path, outputs: Path, prelude: str = "") -> None:
    """Run the commands of a page in a directory, and compare what they print with what it shows."""
    parts = [f'{{\n{block.text}\n}} >"{outputs}/{number}" 2>&1' for number, block in enumerate(page.run())]
    code = run_script("\n".join(["set -euo pipefail", MAKE, prelude, *parts]), directory)
    printed = [path.read_text() for path in sorted(outputs.iterdir(), key=lambda path: int(path.name))]
    failed = page.run()[len(printed) - 1]
    assert code == 0, f"{page}, line {failed.line}:\n{failed.text}\n\nexit code {code}:\n{printed[-1]}"
    for block, expected in expectations(page):
        actual = printed[page.run().index(block)]
        assert matches(expected.text, actual), f"{page}, line {expected.line}, was:\n{expected.text}\n\nis:\n{actual}"


def run_script(script: str, directory: Path) -> int | str:
    """Run it as a person at a terminal of 80 columns would; whatever it left in the background is ended."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1"}
    with subprocess.Popen(["bash", "-c", script], cwd=directory, env=environment, start_new_session=True) as shell:
        try:
            return shell.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            return f"none after {PATIENCE_SECONDS} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)


def expectations(page: Page) -> Iterator[tuple[Block, Block]]:
    """Each block of commands with the block of output that follows it."""
    for block, following in zip(page.blocks, page.blocks[1:], strict=False):
        if following.language == "output":
            assert block in page.run(), f"{page}, line {following.line}: output of nothing that is run"
            yield block, following


def matches(expected: str, actual: str) -> bool:
    """Line by line, up to space at the ends and progress; `...` alone in a line stands for any lines."""
    lines = [".*" if line.strip() == "..." else re.escape(line.strip()) for line in expected.strip().splitlines()]
    # Lines of progress are printed where a command takes more than three seconds: only on a slow machine.
    printed = [line.strip() for line in actual.strip().splitlines()]
    stripped = "\n".join(line for line in printed if not re.fullmatch(r".+: [\d,]+ of [\d,]+", line))
    return re.fullmatch("\n".join(lines), stripped, re.DOTALL) is not None


def test_make_test_checks_everything_and_leaves_only_long_tests_out() -> None:
    ran = (ROOT / ".ci" / "run").read_text().splitlines()
    assert ran[-2:] == ["time make test", "time make test-long LONG=--touched"], "what a change must pass"
    expanded = done("make", "--just-print", "--old-file=.venv/ready", "test")
    for tool in ("ruff check .", "ruff format --check .", "mypy", "lint-imports", "scripts.size --check"):
        assert tool in expanded
    tests = [line.partition(" -m pytest ")[2].split() for line in expanded.splitlines() if " -m pytest " in line]
    everything = ["-n", "3", "--dist", "loadgroup", "--durations", "100"]
    assert tests[-1] == everything, "no marker, no name, no path: all that are not long"
    assert all(words[0] == "--collect-only" for words in tests[:-1])


def test_commands_that_are_not_run_could_be() -> None:
    for page in pages():
        for block in page.blocks:
            if block.language == "sh" and block.not_run is not None:
                for arguments in commands(block.text, "hearsay"):
                    parsed(arguments)


def test_commands_in_the_text_exist() -> None:
    wrong = [f"{page}: {code}" for page in pages() for code in unknown_commands(page)]
    assert not wrong, "\n".join(wrong)


def unknown_commands(page: Page) -> Iterator[str]:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for code in INLINE.findall(page.prose):
        for arguments in commands(code, "make"):
            if {word for word in arguments if "=" not in word} - set(targets):
                yield code
        for arguments in commands(code, "hearsay"):
            command, own = resolve(arguments)
            known = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
            if any(word.startswith("-") and word.partition("=")[0] not in known | {"--help"} for word in own):
                yield code


def test_no_command_hides_from_these_tests() -> None:
    hidden = [f"{page}: put {line!r} into a block of sh" for page in pages() for line in hidden_commands(page)]
    assert not hidden, "\n".join(hidden)


def hidden_commands(page: Page) -> Iterator[str]:
    assert {block.language for block in page.blocks} <= LANGUAGES, page
    shown = [block.text for block in page.blocks if block.language in ("", "text", "yaml", "json")]
    indented = re.findall(r"^(?:    |\t)(.*)$", page.prose, flags=re.MULTILINE)
    for text in [*shown, *indented]:
        yield from (line for line in text.splitlines() if re.match(r"\$? ?(hearsay|make) ", line))
