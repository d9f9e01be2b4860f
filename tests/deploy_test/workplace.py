"""Where a run of the deployment tests keeps its files, and how it starts programs."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
LAST_LINES = 15


class StepFailed(Exception):
    """A step found something wrong: the sentence says what."""


@dataclass
class Workplace:
    """A directory of this run's own. What one step leaves for a later one is in `made`."""

    directory: Path
    made: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    """What every program is told, beyond this process's own environment."""

    def __post_init__(self) -> None:
        self.log = self.directory / "log.txt"
        self.directory.mkdir(parents=True, exist_ok=True)

    def path(self, *parts: str) -> Path:
        """A place below the directory, whose parent exists."""
        path = self.directory.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def run(self, *command: str | Path, **options: Any) -> str:
        """Run a program, note everything that it says in the log, and return its standard output.

        Raises StepFailed with its last lines if it fails or takes longer than `within` seconds.
        """
        done = self.tried(*command, **options)
        if done.returncode != 0:
            raise StepFailed(f"{shown(command)} ended with code {done.returncode}:\n{last_lines(done)}")
        return done.stdout

    def tried(
        self,
        *command: str | Path,
        within: float,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        given: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """The same, where failing is an answer too."""
        arguments = [str(part) for part in command]
        try:
            done = subprocess.run(
                arguments,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=within,
                cwd=cwd or self.directory,
                env={**os.environ, **self.environment, **(environment or {})},
                input=given,
            )
        except subprocess.TimeoutExpired:
            raise StepFailed(f"{shown(command)} did not end within {within:.0f} seconds") from None
        self.note(f"$ {shown(command)}\n{done.stdout}{done.stderr}[{done.returncode}]")
        return done

    def note(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(text + "\n")

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


def require(fact: object, sentence: str) -> None:
    """Fail the step with this sentence unless something holds."""
    if not fact:
        raise StepFailed(sentence)


def wait(condition: Callable[[], bool], within: float, what: str, said: Callable[[], str] = str) -> None:
    """Wait until something holds. Fails the step after so many seconds, with what it waited for and what is `said`."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise StepFailed(f"still no {what} after {within:.0f} seconds\n{said()}")
        time.sleep(0.5)


def shown(command: Sequence[str | Path]) -> str:
    return " ".join(str(part) for part in command)[:200]


def last_lines(done: subprocess.CompletedProcess[str]) -> str:
    return "\n".join((done.stdout + done.stderr).strip().splitlines()[-LAST_LINES:])
