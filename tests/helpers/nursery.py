"""Commands as processes that start at once: one process imports everything, and forks a child for each of them.

A child is what `python -m hearsay` would be, a process with its own arguments, environment, directory, outputs and
signals, without the two CPU seconds of imports and loaded loops before it. Run as a program, this module reads a line
of JSON for each child and answers with its process id, and later with its exit code.
"""

import atexit
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
HEARSAY = [sys.executable, "-m", "hearsay"]
COMMAND_SECONDS = 240.0
"""How long a command that ends by itself may take."""
END_SECONDS = 90.0
POLL_SECONDS = 0.01


class Child:
    """A forked command, with the part of `subprocess.Popen` that tests and `WorkerProcess` use."""

    def __init__(self, nursery: "Nursery", pid: int) -> None:
        self._nursery = nursery
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.exit_code(self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(POLL_SECONDS)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The process that forks. What it has forked ends with it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.helpers.nursery"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
        )
        self._lock = threading.Lock()

    def fork(self, arguments: list[str], files: list[str], environment: dict[str, str], directory: str) -> Child:
        asked = {"arguments": arguments, "files": files, "environment": environment, "directory": directory}
        return Child(self, int(self._ask(asked)))

    def exit_code(self, pid: int) -> int | None:
        answer = self._ask({"reap": pid})
        return None if answer == "runs" else int(answer)

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        finally:
            self._process.kill()
            self._process.stdout.close()

    def _ask(self, what: dict[str, object]) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()
            answers, _, _ = select.select([self._process.stdout], [], [], END_SECONDS)
            assert answers, f"the process that forks did not answer within {END_SECONDS:.0f} s"
            answer = self._process.stdout.readline()
        assert answer, "the process that forks has ended"
        return answer.strip()


@cache
def the_nursery() -> Nursery:
    """The one of this process, started when it is first asked for."""
    nursery = Nursery()
    atexit.register(nursery.end)
    return nursery


def launch(
    command: list[str], *, env: dict[str, str], stdout: IO[bytes], stderr: IO[bytes]
) -> Child | subprocess.Popen[bytes]:
    """`subprocess.Popen`, but forked where the command is `python -m hearsay ...` as it is."""
    if command[:3] != HEARSAY:
        return subprocess.Popen(command, env=env, stdout=stdout, stderr=stderr)
    return the_nursery().fork(command[3:], [str(stdout.name), str(stderr.name)], env, str(Path.cwd()))


def run(*arguments: str, directory: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `hearsay ARGUMENTS` to its end, as a person at a terminal of 80 columns."""
    given = {**os.environ, "COLUMNS": "80", **environment}
    with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
        files = [output.name, errors.name]
        child = the_nursery().fork(list(arguments), files, given, str(directory or Path.cwd()))
        try:
            code = child.wait(COMMAND_SECONDS)
        finally:
            child.kill()
        shown = [Path(file).read_text() for file in files]
    return subprocess.CompletedProcess(["hearsay", *arguments], code, *shown)


def _serve(requests: IO[str], answers: IO[str]) -> None:
    children: set[int] = set()
    for line in requests:
        asked = json.loads(line)
        if "reap" in asked:
            pid, status = os.waitpid(asked["reap"], os.WNOHANG)
            children.discard(pid)
            answers.write(f"{os.waitstatus_to_exitcode(status) if pid else 'runs'}\n")
        else:
            pid = os.fork()
            if pid == 0:
                _become(**asked)
            children.add(pid)
            answers.write(f"{pid}\n")
        answers.flush()
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _become(arguments: list[str], files: list[str], environment: dict[str, str], directory: str) -> None:
    """In the child: run the command, with its output in files."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    outputs = [os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for file in files]
    for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), *outputs)):
        os.dup2(stream, number)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["hearsay", *arguments]
    from hearsay.cli import main

    code = 1
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    from importlib import import_module

    # Faces of folders import what is in them. Not those of hearsay: its terminal reads the environment at import.
    rooms = "protocols servers memo_store analytics producers stream_app views gateway pages"
    for face in sorted(path for room in rooms.split() for path in (ROOT / room).glob("*/__init__.py")):
        import_module(f"{face.parts[-3]}.{face.parts[-2]}")
    import_module("scipy.optimize")  # which planning and simulating import when they need it
    from stream_app.counting import load_loops

    load_loops()
    gc.freeze()  # of all this, a child's garbage collector has nothing to look at
    _serve(sys.stdin, sys.stdout)
    os._exit(0)  # taking everything down that was imported takes a while
