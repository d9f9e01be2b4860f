"""Errors that nobody foresaw, each kept to the survey in which it happens."""

from collections.abc import Iterator
from contextlib import contextmanager

from protocols.errors import SurveyDefect, SurveyError


@contextmanager
def confined_to(survey: str) -> Iterator[None]:
    """Whatever fails in the block fails for one survey: an error that nobody foresaw becomes a `SurveyDefect`.

    A collector has many surveys. Without this, one on which a release of ours fails would end every process that reads
    it, and with it the collection of all others.

    >>> with confined_to("buttons"):
    ...     [][0]
    Traceback (most recent call last):
    protocols.errors.SurveyDefect: survey 'buttons' cannot be collected: IndexError: list index out of range (...)
    """
    try:
        yield
    except (SurveyError, ModuleNotFoundError):  # a package that is not installed is no defect: its extra is named
        raise
    except Exception as error:
        raise SurveyDefect(
            f"survey {survey!r} cannot be collected: {type(error).__name__}: {error}",
            "this is a bug: `hearsay --debug survey check` shows where; other surveys are collected",
        ) from error
