"""What a device refuses, and the root of all errors that hearsay raises on purpose."""

from __future__ import annotations

from typing import NoReturn


class HearsayError(Exception):
    """The root: catch this to catch everything hearsay raises on purpose.

    `message` is what was wrong and where; `hint` is what to do.
    """

    retriable = False

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class DeviceError(HearsayError):
    """A person's device refuses. `code` says why, for programs (docs/device-protocol.md). It never has a value."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


def refuse(code: str, message: str, hint: str = "") -> NoReturn:
    raise DeviceError(code, message, hint)
