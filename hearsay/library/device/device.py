"""One person's device. It answers surveys, and trusts nobody (docs/device-protocol.md).

The order is always: settle (the report of a period is made and stored), then send. Whatever happens in between, the
same bytes are sent again, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, Self

import numpy as np

from hearsay.library.device.gateway import Gateway
from hearsay.library.device.limits import Limits, Spending
from hearsay.library.device.state import DeviceState, Joined, Report
from protocols.arrays import Column
from protocols.arrays import Values as Places
from protocols.errors import DeviceError, SurveyError
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Attribute, Grid, micros
from protocols.wire import Frame, decode_terms, encode_report

ALONE = np.zeros(1, dtype=np.uint64)
TIMEOUT_SECONDS = 20.0

Values = Mapping[str, Any]


class Device:
    """A device for one person's machine: it answers surveys within limits, and keeps its state in one SQLite file.

    `limits` are the most that it reveals. `pins` names surveys and their fingerprints: only these are answered, under
    these terms; without it, the terms of the first use are kept for good. `now` and `secret` are for tests: by default
    the clock is the system's, and the secret is drawn from the system once and kept in the file.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        limits: Limits | None = None,
        pins: Mapping[str, str] | None = None,
        now: Callable[[], datetime] | None = None,
        secret: bytes | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._pins = pins
        self._now = now or _utc
        self._schemes: dict[bytes, Scheme] = {}
        self._state = DeviceState(Path(path), secret)
        self._keyring = Keyring(self._state.secret)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._state.close()

    def join(self, terms: bytes) -> str:
        """Verify the terms of a survey and keep them for good; returns its id.

        They are refused if they are not what their own budgets resolve to, if they are not the kept ones, or if they
        may reveal more than the limits allow.
        """
        scheme = self._compiled(terms)
        survey, spending = scheme.survey.id, Spending.of(scheme)
        self._require_pinned(survey, scheme.fingerprint)
        with self._state.change():
            joined = self._state.joined()
            if survey in joined:
                if joined[survey].fingerprint != scheme.fingerprint:
                    raise DeviceError("changed", f"the terms of survey {survey!r} have changed", "do not answer it")
                spending = joined.pop(survey).spending
            else:
                self._state.join(survey, scheme.fingerprint, terms, spending)
            self._limits.check(survey, spending, (other.spending for other in joined.values()))
        return survey

    def join_from(self, gateway: str, survey: str, timeout: float = TIMEOUT_SECONDS, bearer: str | None = None) -> None:
        """Join a survey under the terms that a gateway has. Nothing about the person is sent."""
        self._join_from(Gateway(gateway, timeout, bearer), survey)

    def preview(self, survey: str, values: Values) -> Report:
        """What the next report says: the one that is settled, or the one that these values would make.

        Nothing is stored or sent.
        """
        try:
            with self._state.change():
                scheme = self._forget_late(self._joined(survey))
                raise _Undo(self._state.owed(survey) or self._settle(survey, scheme, values))
        except _Undo as undone:
            return undone.report

    def settle(self, survey: str, values: Values) -> Report:
        """Make the report of this period and store it. Settled again, it is the first one, whatever the values."""
        with self._state.change():
            return self._settle(survey, self._forget_late(self._joined(survey)), values)

    def confirm(self, survey: str, period: int) -> None:
        """Record that the settled report of a period has arrived; for programs that send it themselves."""
        with self._state.change():
            self._finish(survey, period, arrived=True)

    def send(
        self, gateway: str, survey: str, values: Values, timeout: float = TIMEOUT_SECONDS, bearer: str | None = None
    ) -> int:
        """Report this period through a gateway; returns the period.

        At the first use the survey's terms are fetched. A report of an earlier period that is still owed, and still
        taken, is sent before. `timeout` is for each request, in seconds; `bearer` is a credential, if one is needed.
        """
        at = Gateway(gateway, timeout, bearer)
        if survey not in self._state.joined():
            self._join_from(at, survey)
        now = self._period(self._compiled(self._joined(survey).terms))
        if self._send_owed(at, survey) == now:
            return now
        settled = self.settle(survey, values)
        if self._send_owed(at, survey) is None and self._joined(survey).delivered != settled.period:
            raise _late(survey, settled.period)  # it is not owed any more, and no other process delivered it
        return settled.period

    def _join_from(self, gateway: Gateway, survey: str) -> None:
        terms = gateway.terms(survey)
        if self._compiled(terms).survey.id != survey:
            raise DeviceError("terms", "the gateway answered with another survey", "do not answer it")
        self.join(terms)

    def _send_owed(self, gateway: Gateway, survey: str) -> int | None:
        """Send the report that is settled and not confirmed, if its period still takes it; returns its period."""
        with self._state.change():
            self._forget_late(self._joined(survey))
            owed = self._state.owed(survey)
        if owed is None:
            return None
        outcome = gateway.post(owed.report)
        with self._state.change():
            self._finish(survey, owed.period, arrived=outcome == "counted")
        if outcome == "late":
            raise _late(survey, owed.period)
        return owed.period

    def _finish(self, survey: str, period: int, arrived: bool) -> None:
        owed = self._state.owed(survey)
        if owed is not None and owed.period == period:
            self._state.forget_owed(survey)
            if arrived:
                self._state.deliver(survey, period)

    def _settle(self, survey: str, scheme: Scheme, values: Values) -> Report:
        joined, period = self._joined(survey), self._period(scheme)
        if period < 0:
            raise DeviceError("early", f"survey {survey!r} has not begun", "wait")
        if period > scheme.survey.calendar.last:
            raise DeviceError("over", f"survey {survey!r} is over")
        owed = self._state.owed(survey)
        if owed is not None and owed.period == period:
            return owed
        if owed is not None:
            raise DeviceError("owed", f"survey {survey!r}: the report of period {owed.period} is to be sent first")
        if joined.settled is not None and joined.settled >= period:
            raise DeviceError("reported", f"survey {survey!r}: period {period} is reported", "wait for the next one")
        places = {
            attribute.name: np.array([self._place(survey, attribute, values)]) for attribute in scheme.survey.attributes
        }
        respondent = Respondent(scheme, self._keyring)
        (asked,) = (questions for questions, rows in respondent.asked(ALONE, period) if len(rows))
        answers = {
            question.name: self._answer(respondent, question, period, question.places(places)) for question in asked
        }
        answered = joined.spending.answers + (1 if answers else 0)
        spending = Spending(joined.spending.report, joined.spending.life, answered)
        others = (other.spending for other in self._state.joined().values() if other.id != survey)
        self._limits.check(survey, spending, others)
        horizon = scheme.survey.horizon
        gap = horizon if joined.delivered is None else min(horizon, period - joined.delivered)
        tokens, gaps = respondent.tokens(ALONE, period), np.array([gap], dtype=np.uint16)
        frame = Frame(survey, scheme.fingerprint, period, tokens, gaps, answers)
        says = {name: _supported(scheme.question(name), column) for name, column in answers.items()}
        report = Report(period, encode_report(frame, scheme), says)
        self._state.settle(survey, report, spending.answers)
        return report

    def _place(self, survey: str, attribute: Attribute, values: Values) -> int:
        """The place of a person's value. Of a position, the cell; the last one while the device is near it."""
        position = values.get(attribute.name)
        if attribute.grid is None or not isinstance(position, Mapping):
            return _place(attribute, values)
        x, y = _metres(attribute.name, attribute.grid, position)
        cell = attribute.grid.settled(x, y, self._state.stay(survey, attribute.name))
        self._state.set_stay(survey, attribute.name, cell)
        return cell

    def _answer(self, respondent: Respondent, question: Question, period: int, value: Places) -> Column:
        if not respondent.scheme.survey.longitudinal:
            return respondent.answer_once(question, ALONE, period, value)
        cell = self._held(respondent.scheme, question, int(respondent.cells(question, ALONE, value)[0]))
        memo = respondent.memoise(question, ALONE, np.array([cell]))
        return respondent.report(question, ALONE, period, memo)

    def _held(self, scheme: Scheme, question: Question, cell: int) -> int:
        """The cell whose memo is reported. At the cap it is the last one for good, whatever the value."""
        survey, cap = scheme.survey.id, scheme.survey.memo_cap
        if cap is None:
            return cell
        cells = self._state.cells(survey, question.name)
        if len(cells) >= cap:
            return cells[-1]
        if cell not in cells:
            self._state.add_cell(survey, question.name, len(cells), cell)
        return cell

    def _forget_late(self, joined: Joined) -> Scheme:
        """A report that no period takes any more is never sent."""
        scheme = self._compiled(joined.terms)
        owed = self._state.owed(joined.id)
        if owed is not None and scheme.survey.calendar.closed(micros(self._now()), scheme.survey.grace) >= owed.period:
            self._state.forget_owed(joined.id)
        return scheme

    def _period(self, scheme: Scheme) -> int:
        return scheme.survey.period_of(self._now())

    def _joined(self, survey: str) -> Joined:
        joined = self._state.joined()
        if survey not in joined:
            raise DeviceError("unknown", f"this device has not joined survey {survey!r}", "give it the survey's terms")
        self._require_pinned(survey, joined[survey].fingerprint)
        return joined[survey]

    def _require_pinned(self, survey: str, fingerprint: str) -> None:
        if self._pins is not None and self._pins.get(survey) != fingerprint:
            raise DeviceError("pin", f"survey {survey!r}: not the terms that were pinned", "do not answer it")

    def _compiled(self, terms: bytes) -> Scheme:
        """The survey of these terms; compiling takes a while, so it is kept."""
        if terms not in self._schemes:
            try:
                self._schemes[terms] = decode_terms(terms)
            except SurveyError as error:
                raise DeviceError("terms", error.message, error.hint) from None
        return self._schemes[terms]


class _Undo(Exception):
    """Carries a report out of a transaction that is not to be stored."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


def _utc() -> datetime:
    return datetime.now(UTC)


def _late(survey: str, period: int) -> DeviceError:
    return DeviceError("late", f"period {period} of survey {survey!r} is closed; its report was not counted")


def _place(attribute: Attribute, values: Values) -> int:
    """The place of a person's value in the survey's list. The error does not name it."""
    try:
        return attribute.values.index(str(values[attribute.name]))
    except (KeyError, ValueError):
        raise DeviceError("value", f"{attribute.name!r} needs one of the survey's values") from None


def _metres(name: str, grid: Grid, position: Mapping[str, Any]) -> tuple[float, float]:
    """A position in the metres of a grid: {latitude, longitude}, or {x, y}. The error does not name it."""
    try:
        if "latitude" in position and grid.projection is not None:
            x, y = grid.projection.metres(float(position["latitude"]), float(position["longitude"]))
        else:
            x, y = np.asarray(position["x"], np.float64), np.asarray(position["y"], np.float64)
        if isfinite(float(x)) and isfinite(float(y)):
            return float(x), float(y)
    except (KeyError, TypeError, ValueError):
        pass
    raise DeviceError(
        "value", f"{name!r} needs a cell, a latitude and longitude that its grid knows, or x and y in metres"
    )


def _supported(question: Question, column: Column) -> tuple[str, ...]:
    counts = question.mechanism.encoding.count(column, np.zeros(1, dtype=np.int64), 1)[0]
    return tuple(value for value, count in zip(question.attribute.values, counts, strict=True) if count)
