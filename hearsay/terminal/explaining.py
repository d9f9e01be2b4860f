"""Errors as one sentence, a hint and an exit code."""

import errno
import sqlite3

from rich.markup import escape

from hearsay.terminal import console
from protocols.errors import HearsayError, Stopped, SurveyDefect

# Exit codes. 0: done. 2: wrong usage. The others:
REFUSED = 1  # the message says why, the hint what to do
BROKEN = 70  # unexpected: a bug, or a worker that cannot be sure that its counts are right
TRY_AGAIN = 75  # a server is not available
STOPPED = 130  # by the user

MAY_NOT_WRITE = "choose a path where you may write"
NO_DIRECTORY = "a file is where a directory is needed: choose another path"
FULL = "free disk space, then run the same command again: it resumes"
FEW_FILES = "allow more open files (`ulimit -n 1024`), then run the same command again"
HINTS = {
    errno.EACCES: MAY_NOT_WRITE,
    errno.EPERM: MAY_NOT_WRITE,
    errno.EROFS: MAY_NOT_WRITE,
    errno.EEXIST: NO_DIRECTORY,
    errno.ENOTDIR: NO_DIRECTORY,
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EMFILE: FEW_FILES,
    errno.ENFILE: FEW_FILES,
}


def explain(error: Exception) -> int:
    """Print an error, and return the exit code."""
    sentence, hint, code = _explained(error)
    console.err.print(f"[red bold]hearsay:[/] {escape(sentence)}", soft_wrap=True)
    if hint:
        console.err.print(f"[dim]hint:[/] {escape(hint)}", soft_wrap=True)
    return code


def _explained(error: Exception) -> tuple[str, str, int]:
    if isinstance(error, HearsayError):
        return error.message, error.hint, _code(error)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}", HINTS.get(error.errno or 0, "check the path, or choose another"), REFUSED
    if isinstance(error, sqlite3.OperationalError) and "disk is full" in str(error):
        return "the disk is full", FULL, REFUSED
    what = f"unexpected error: {type(error).__name__}: {error}"
    return what, "this is a bug: `hearsay --debug` with the same arguments shows the traceback", BROKEN


def _code(error: HearsayError) -> int:
    if isinstance(error, Stopped):
        return STOPPED
    if isinstance(error, SurveyDefect):
        return BROKEN
    return TRY_AGAIN if error.retriable else REFUSED
