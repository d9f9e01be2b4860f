"""A plugin of pytest: it collects the tests once, and then runs them in a fork of the process for each mutant.

Most of a test run is imports. So a mutant's functions get their new code in the memory of the fork, and the changed
file is in the copy of the checkout, for processes that tests start. A mutant that is not in a function is tried in a
new process. So are survivors, if that is wanted: something may have been computed from the unchanged function before.
"""

import gc
import json
import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from types import CodeType, FunctionType
from typing import NoReturn

import pytest

from tests.mutants.mutating import Mutant
from tests.mutants.results import Results, Verdict

CPU_SECONDS_MORE = 60
"""Beyond twice what all tests take: a mutant that computes for ever is noticed then."""
WAITING_SECONDS = 900
"""A mutant that waits for ever is noticed then. The machine may have others to serve, so it is long."""
OPTIONS = ("-q", "-s", "-p", "no:cacheprovider")
BROKEN = 99  # the exit code of a fork in which no test could be run


@dataclass
class Job:
    """What to try, and the files of outcomes and of the times that tests take.

    Tests that take longer than `slowest` CPU seconds are left out. With `anew`, each mutant has a process of its own.
    """

    mutants: list[Mutant]
    results: str
    times: str
    slowest: float
    anew: bool

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(file: Path) -> "Job":
        held = json.loads(file.read_text())
        return Job(**{**held, "mutants": [Mutant(**mutant) for mutant in held["mutants"]]})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", type=Path, help="the file with the mutants to try")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of running the tests once: run them for each mutant."""
    job = Job.read(session.config.getoption("--mutants"))
    results = Results(Path(job.results))
    timed = _time(session, Path(job.times))
    quick = [item for item in session.items if timed[item.nodeid] <= job.slowest]
    whole = sum(timed[item.nodeid] for item in quick)
    print(
        f"{len(session.items)} tests pass, {len(quick)} of them quick ones that take {whole:.0f} CPU seconds",
        flush=True,
    )
    for number, mutant in enumerate(job.mutants, 1):
        session.items = list(_likely_first(quick, timed, mutant.module))
        verdict = _try(session, mutant, job.anew, int(2 * whole) + CPU_SECONDS_MORE)
        results.add(mutant, verdict)
        about = f"{verdict.outcome} in {verdict.seconds:.0f} s: {mutant.file}:{mutant.line} {verdict.by}"
        print(f"{number} of {len(job.mutants)} {about}", flush=True)
    return True


def _time(session: pytest.Session, times: Path) -> dict[str, float]:
    """The CPU seconds of each test, without a mutant. All of them must pass, once for each state of the checkout."""
    printed = Path("unchanged.txt")

    def run() -> int:
        timer = _Timer()
        session.config.pluginmanager.register(timer)
        code = _run_items(session)
        if code == 0:
            times.write_text(json.dumps(timer.seconds))
        return code

    outcome = "survived" if times.exists() else _forked(run, printed, cpu_seconds=3600)
    if outcome != "survived":
        pytest.exit(f"without a mutant, the tests are {outcome}\n{printed.read_text()[-5000:]}", returncode=1)
    timed: dict[str, float] = json.loads(times.read_text())
    return timed


class _Timer:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = sum(os.times()[:4])
        yield
        self.seconds[item.nodeid] = sum(os.times()[:4]) - before


def _likely_first(items: list[pytest.Item], timed: dict[str, float], module: str) -> Iterator[pytest.Item]:
    """File by file, because tests of a file share fixtures: quick files first, and those that import the module."""
    files = {file: list(tests) for file, tests in groupby(items, key=lambda item: item.path)}

    def rank(file: Path) -> float:
        whole = sum(timed[item.nodeid] for item in files[file])
        return whole / 10 if f"from {module} import" in file.read_text() else whole

    for file in sorted(files, key=rank):
        yield from files[file]


def _try(session: pytest.Session, mutant: Mutant, anew: bool, cpu_seconds: int) -> Verdict:
    began = time.monotonic()
    file, printed = Path(mutant.file), Path("mutant.txt")
    original = file.read_text()
    tests = [item.nodeid for item in session.items]
    try:
        file.write_text(mutant.text)
        if mutant.in_function and not anew:
            outcome = _forked(lambda: _run_changed(session, mutant), printed, cpu_seconds)
        else:
            outcome = _forked(lambda: _run_anew(tests), printed, cpu_seconds)
    finally:
        file.write_text(original)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", printed.read_text(), re.MULTILINE)
    return Verdict(outcome, time.monotonic() - began, failed[1] if failed else "")


def _run_changed(session: pytest.Session, mutant: Mutant) -> int:
    try:
        _replace_code(str(Path(mutant.file).resolve()), mutant.text)
    except ValueError:  # without `super()`, for instance, a function refers to nothing outside
        _run_anew([item.nodeid for item in session.items])
    session.config.option.maxfail = 1
    return _run_items(session)


def _run_items(session: pytest.Session) -> int:
    """What pytest does by itself with the tests that it has collected."""
    from _pytest import main, terminal

    with suppress(session.Failed):
        main.pytest_runtestloop(session)
    session._setupstate.teardown_exact(None)  # servers that tests share end, also if the last test was not reached
    reporter: terminal.TerminalReporter = session.config.pluginmanager.getplugin("terminalreporter")
    reporter.short_test_summary()
    return 1 if session.testsfailed else 0


def _run_anew(tests: list[str]) -> NoReturn:
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *OPTIONS, "-x", *tests])


def _replace_code(file: str, text: str) -> None:
    """Give the functions of a module, wherever they are held, the code that they have in another text."""
    codes = {code.co_qualname: code for code in _functions(compile(text, file, "exec"))}
    gc.unfreeze()
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__code__.co_filename == file:
            found.__code__ = codes.get(found.__code__.co_qualname, found.__code__)


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The functions and methods in the code of a module, without those that are made when they are called."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            if not constant.co_flags & 0x1:  # CO_OPTIMIZED: a function, and not the body of a class
                yield from _functions(constant)


def _forked(run: Callable[[], int], printed: Path, cpu_seconds: int) -> str:
    """What becomes of a run in a fork of this process. What it prints goes to a file."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _run_in_child(run, printed, cpu_seconds)
    _, status = os.waitpid(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if os.WIFSIGNALED(status):
        return "not done"
    if os.WEXITSTATUS(status) == BROKEN:
        pytest.exit(f"no test could be run\n{printed.read_text()[-5000:]}", returncode=1)
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


def _run_in_child(run: Callable[[], int], printed: Path, cpu_seconds: int) -> NoReturn:
    code = BROKEN
    try:
        os.setsid()
        output = os.open(printed, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        signal.alarm(WAITING_SECONDS)
        code = run()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
