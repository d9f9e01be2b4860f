"""Processes that die between two steps, whatever a test calls a step."""

from collections.abc import Callable
from typing import Any

import pytest

EVERY = [7, pytest.param(1, marks=pytest.mark.long(part="kills"))]
"""Die before each seventh step in the ordinary tests, and before every one in the long ones."""


class Killed(BaseException):
    """Nothing catches it: the process is gone."""


class Steps:
    """Counts calls of functions and methods. From the fatal one on, none is made until the next process begins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: tuple[Any, str]) -> None:
        self.begin(0)
        for owner, name in steps:
            monkeypatch.setattr(owner, name, self._counted(name, getattr(owner, name)))

    def begin(self, fatal: int) -> None:
        """A new process, which dies before the step of this number; 0: before none."""
        self.taken: list[str] = []
        self._fatal = fatal

    def _counted(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **more: Any) -> Any:
            self.taken.append(name)
            if self._fatal and len(self.taken) >= self._fatal:
                raise Killed(name)
            return step(*arguments, **more)

        return counting
