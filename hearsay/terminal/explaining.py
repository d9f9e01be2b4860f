"""What went wrong, as one sentence, a hint and an exit code."""

from __future__ import annotations

import errno

from rich.markup import escape

from hearsay.terminal import console
from hearsay.terminal.exits import BROKEN, REFUSED, STOPPED, TRY_AGAIN
from protocols.errors import HearsayError, Stopped

MAY_NOT_WRITE = "choose a place where you may write"
NO_DIRECTORY = "there is a file where a directory is needed: choose another place"
HINTS = {
    errno.EACCES: MAY_NOT_WRITE,
    errno.EPERM: MAY_NOT_WRITE,
    errno.EROFS: MAY_NOT_WRITE,
    errno.EEXIST: NO_DIRECTORY,
    errno.ENOTDIR: NO_DIRECTORY,
    errno.ENOSPC: "make room, then run the same command again: it goes on where it was",
}


def explain(error: Exception) -> int:
    """Say it to the user; the exit code."""
    sentence, hint, code = _told(error)
    console.err.print(f"[red bold]hearsay:[/] {escape(sentence)}", soft_wrap=True)
    if hint:
        console.err.print(f"[dim]hint:[/] {escape(hint)}", soft_wrap=True)
    return code


def _told(error: Exception) -> tuple[str, str, int]:
    if isinstance(error, HearsayError):
        code = STOPPED if isinstance(error, Stopped) else TRY_AGAIN if error.retriable else REFUSED
        return error.message, error.hint, code
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}", HINTS.get(error.errno or 0, "look at that path, or choose another"), REFUSED
    what = f"something unexpected happened: {type(error).__name__}: {error}"
    return what, "this is a defect: `hearsay --debug`, with the same words behind it, shows where it is", BROKEN
