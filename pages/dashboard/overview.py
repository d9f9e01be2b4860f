"""How the surveys are doing: what the page about all surveys shows, from what is published about them."""

from collections import Counter
from datetime import datetime
from typing import Any

from protocols.survey import Survey
from views.reading import Followed
from views.results import Histogram, Live

RECENT = 60
"""Of how many periods the numbers of reports are shown."""
GOOD = "consistent"
"""The verdict that is no alarm."""


class SurveyStatus:
    """The status of one survey. It knows only what was published: a suppressed number is not there."""

    def __init__(self) -> None:
        self._title = ""
        self._finals: dict[int, Histogram] = {}  # of recent periods, without their columns
        self._live: Live | None = None
        self._verdicts: Counter[str] = Counter()  # on the integrity of finals
        self._alarms: dict[int, dict[str, Any]] = {}  # the periods whose verdict is not good, the newest ones

    def describe(self, survey: Survey) -> None:
        self._title = survey.title

    def note(self, followed: Followed) -> None:
        """Take in a result."""
        result = followed.result
        if isinstance(result, Histogram):
            self._finals[result.period] = result.model_copy(update={"attributes": ()})
            if len(self._finals) > RECENT:
                del self._finals[min(self._finals)]
            self._note_verdict(result)
        elif isinstance(result, Live):
            still_open = tuple(period.model_copy(update={"attributes": ()}) for period in result.open)
            self._live = result.model_copy(update={"open": still_open})

    def _note_verdict(self, final: Histogram) -> None:
        found = final.integrity
        if found is not None:
            self._verdicts[found.verdict] += 1
            if found.verdict != GOOD:
                self._alarms[final.period] = _period(final) | {"verdict": found.verdict}
                if len(self._alarms) > RECENT:
                    del self._alarms[min(self._alarms)]

    def record(self, lag: int | None) -> dict[str, Any]:
        """The document. `lag` is how many records of all surveys are not counted yet; None where it is not shown."""
        live = self._live
        provisional = [] if live is None else [period for period in live.open if period.period not in self._finals]
        last = max(self._finals, default=None)
        return {
            "title": self._title,
            "periods": [_period(found) for _, found in sorted(self._finals.items())],
            "open": [_period(found) for found in provisional],
            "last_final": None if last is None else _period(self._finals[last]),
            "closed_through": None if live is None or live.closed_through < 0 else live.closed_through,
            "rejects": {} if live is None else live.rejects,
            "late": 0 if live is None else sum(live.lates.values()),
            "lost": 0 if live is None else sum(loss.reports for loss in live.lost),
            "lag": lag,
            "integrity": dict(self._verdicts) or None,
            "alarms": [alarm for _, alarm in sorted(self._alarms.items())],
        }


def _period(found: Histogram) -> dict[str, Any]:
    return {
        "period": found.period,
        "begin": _text(found.begin),
        "end": _text(found.end),
        "n": None if found.suppressed else found.n,
        "suppressed": found.suppressed,
    }


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
