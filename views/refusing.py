"""Results that are refused: they cannot be made, or readers could not read them. They are never published.

The finals that they are made of are kept. So a release that can make them publishes them when it is started.
"""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from protocols.errors import ResultsError
from stream_app.finals import FinalKey
from views.view import View, what_is_wrong

ADVICE = (
    "report this as a bug of hearsay; what was collected is kept, and a release in which it is mended publishes the "
    "results of the period when it is started on the same data"
)


class Refused(Exception):
    """A result that is not published, and why: the fields that readers would refuse, or the error in making it."""

    def __init__(self, view: View[Any], key: FinalKey, why: str) -> None:
        super().__init__(why)
        self.view = view
        self.key = key

    @property
    def place(self) -> str:
        """The survey, the period and the result, for people."""
        period = "what is open" if self.key.period is None else f"period {self.key.period}"
        return f"survey {self.key.survey!r}, {period}: the {self.view.kind} result"


def reason(error: Exception) -> str:
    """Why a result cannot be made."""
    if isinstance(error, ValidationError):
        return what_is_wrong(error)
    return f"{type(error).__name__}: {error}"


class Refusals:
    """The refused results of a process. Each is said in the log once, however often it is tried.

    `told` is told of each one, too.
    """

    def __init__(self, told: Callable[[Refused], None] = lambda refused: None) -> None:
        self._told = told
        self._known: dict[tuple[str, FinalKey, str], Refused] = {}

    def note(self, refused: Refused) -> None:
        import structlog  # takes time, and is seldom needed

        log = structlog.get_logger(__name__)
        known = refused.view.name, refused.key, str(refused)
        if known in self._known:
            return
        self._known[known] = refused
        log.error(
            "a result is refused, and no result of its period is published",
            survey=refused.key.survey,
            period=refused.key.period,
            result=refused.view.kind,
            why=str(refused),
            advice=ADVICE,
            exc_info=refused.__cause__,
        )
        self._told(refused)

    def raise_any(self) -> None:
        """Raise ResultsError if results of periods were refused."""
        refused = [one for one in self._known.values() if one.key.period is not None]
        if not refused:
            return
        more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
        raise ResultsError(f"{refused[0].place} is refused and not published: {refused[0]}{more}", ADVICE)
