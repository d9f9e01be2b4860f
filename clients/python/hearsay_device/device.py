"""One person's device: it settles a report (makes and stores it), then sends these bytes until they have arrived."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from hearsay_device.clock import Uptime, machine_uptime
from hearsay_device.delivery import Delivery, Sent
from hearsay_device.errors import DeviceError, refuse
from hearsay_device.limits import Limits, require_within_budgets
from hearsay_device.respondent import Entropy
from hearsay_device.settling import Report, Values, report_of
from hearsay_device.state import State
from hearsay_device.terms import read_terms
from hearsay_device.trust import require_pin, require_signature

if TYPE_CHECKING:  # half of what importing this package would cost
    from hearsay_device.gateway import Gateway

WARNED: set[tuple[str, ...]] = set()


class Device:
    """A device for one person's machine: it answers surveys within limits, and keeps its state in one SQLite file.

    Whether, when and how often it sends is never a function of a value. `now`, `wait`, `entropy` and
    `uptime` are for tests: by default they are the system's clock, its sleep, its randomness, and
    how long it runs.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        limits: Limits | None = None,
        now: Callable[[], float] = time.time,
        wait: Callable[[float], None] = time.sleep,
        entropy: Entropy = lambda _: os.urandom(32),
        uptime: Uptime = machine_uptime,
    ) -> None:
        self._limits = limits or Limits()
        self._now = now
        self._wait = wait
        self._state = State(Path(path), self._limits, now, entropy, uptime)
        self._change = self._state.change

    def __enter__(self) -> Device:
        return self

    def close(self, *_: object) -> None:
        self._state.close()

    __exit__ = close

    def send(
        self,
        url: str,
        survey: str,
        values: Values,
        *,
        pin: str | None = None,
        author: str | None = None,
        bearer: str | None = None,
        timeout: float = 20.0,
        trust_first_use: bool = False,
        spread: float | None = None,
        wait: float = 0.0,
        apart: bool | None = None,
    ) -> Sent:
        """Report this period through a gateway. Call it by the clock, not by the event.

        It settles the report of this period, then sends at most one report that is due. Each report
        has a moment of its own, drawn over what is left of its period and half of the survey's grace:
        so reports of one device do not follow each other. Call it again at `again_at`.

        At the first use the survey's terms are fetched. `pin` is their hash (in versions 1 and 2 its
        first 32 digits are enough); `author` is the public key of whoever signs them. Without both
        they are accepted from this machine only, or with `trust_first_use`. `timeout` is for each
        request, in seconds; `bearer` is a credential, if one is needed.

        `spread`: draw moments from so many seconds only, for an app that does not run for long; with
        0, one report is sent at once. `wait`: sleep for so long, if a report becomes due meanwhile.
        `apart=False`: send all that is owed now, one after the other; this is the default for a
        gateway on this machine.
        """
        from hearsay_device.gateway import Gateway

        gateway = Gateway(url, timeout, bearer)
        if apart is None:
            apart = not gateway.loopback
        if not self._has_joined(survey, pin):
            self._join_at(gateway, survey, pin, author, bearer is not None, trust_first_use)
        delivery = Delivery(gateway, survey, self._state, self._now, self._wait)
        refused, report = self._settle_to_send(survey, values, bearer is not None, spread)
        if apart:
            delivery.send_one(spread, wait)
        else:
            delivery.send_all()
        if refused is not None and refused.code != "reported":
            refused.again_at = delivery.next_due()
            raise refused
        sent = delivery.outcome(report)
        self._warn_of_names(survey, values)
        return sent

    def join(
        self,
        terms: bytes,
        *,
        pin: str | None = None,
        author: str | None = None,
        signature: str | None = None,
        trust_first_use: bool = False,
        credential: bool | None = None,
    ) -> str:
        """Verify the terms of a survey and keep them; returns its id. For programs that have the terms already.

        `credential`: whether reports will be sent with one, which links them.
        """
        read = read_terms(terms)
        if author is not None:
            require_signature(read, author, signature)
        elif pin is None and not trust_first_use:
            refuse("pin", f"survey {read.id!r}: its terms are not pinned", f"if right, give pin={read.pin!r}")
        if pin is not None:
            require_pin(read, pin)
        require_within_budgets(read)
        read.verify()
        self._limits.check_terms(read)
        with self._change() as change:
            change.join(read, terms, pin is not None or author is not None, credential)
        return read.id

    def preview(self, survey: str, values: Values) -> Report:
        """The report of this period, if it is settled; otherwise an example. Nothing is stored or sent.

        An example is made with a key that is thrown away. To see what will be sent, settle it, and
        look at `owed`.
        """
        with self._change(keep=False) as change:
            settled = change.owed(survey, change.period(change.terms(survey)))
            report = change.settle(survey, values, None)
        return report._replace(example=not settled)

    def settle(self, survey: str, values: Values) -> Report:
        """Make and store the report of this period, once, whatever values come later; for programs that send it."""
        self._drop_late(survey)
        with self._change() as change:
            report = change.settle(survey, values, None)
            change.hand_out(survey)
        self._warn_of_names(survey, values)
        return report

    def owed(self, survey: str) -> list[Report]:
        """The reports that are settled, not delivered, and still taken; oldest first."""
        self._drop_late(survey)
        with self._change() as change:
            change.hand_out(survey)
            return [report_of(owed) for owed in change.joined(survey)["owed"]]

    def confirm(self, survey: str, period: int) -> None:
        """Record that a settled report has arrived; for programs that send it themselves."""
        with self._change() as change:
            change.joined(survey)
            change.forget(survey, period)

    def leave(self, survey: str) -> None:
        """Answer a survey no more: erase its terms and owed reports, and free what it had reserved."""
        with self._change() as change:
            change.leave(survey)

    def forget_clock(self, survey: str) -> None:
        """If the clock was ahead, and was set right: drop the reports of periods that have not begun.

        Gaps then count from the last period that has begun. No gateway can make this necessary.
        """
        with self._change() as change:
            change.forget_clock(survey)

    def explain(self) -> dict[str, Any]:
        """What its reports may tell, for the person whose device it is.

        `report` and `value`: how often the right one of two equally likely answers is guessed, from
        one report of a survey, and from all reports of a year about a value that stays as it is.
        `year`: how many answers were given, what they were charged, and what surveys have reserved;
        a year is 365 days that the device has lived. `answers`: how many were ever given. `presence`:
        by survey, what published numbers tell about whether this device reported, as a chance and
        in words. `metres`: how far apart the two positions are that are compared, by attribute that
        is a place. `shared`: surveys that ask the same.
        """
        with self._change() as change:
            change.live()
            return change.explain(self._limits.year)

    def check(self, terms: bytes, possible: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
        """For tests of an app: which of its possible values a survey does not list; of no values given, None."""
        unlisted = {}
        for each in read_terms(terms).attributes:
            values = possible.get(each.name, [None])
            unlisted[each.name] = [value for value in values if each.place(value, None) is None]
        return {name: values for name, values in unlisted.items() if values}

    def _has_joined(self, survey: str, pin: str | None) -> bool:
        with self._change() as change:
            change.live()
            joined = change.surveys.get(survey, {"terms": None})
        if joined["terms"] is None:
            return False
        if pin is not None:
            require_pin(read_terms(joined["terms"].encode()), pin)
        return True

    def _join_at(
        self,
        gateway: Gateway,
        survey: str,
        pin: str | None,
        author: str | None,
        credential: bool,
        trust_first_use: bool,
    ) -> None:
        """Fetch the terms of a survey, and join it."""
        terms, signature = gateway.terms(survey)
        if read_terms(terms).id != survey:
            refuse("terms", f"{gateway.address} answered with another survey", "do not answer it")
        self.join(
            terms,
            pin=pin,
            author=author,
            signature=signature,
            trust_first_use=trust_first_use or gateway.loopback,
            credential=credential,
        )

    def _settle_to_send(
        self, survey: str, values: Values, credential: bool, spread: float | None
    ) -> tuple[DeviceError | None, Report | None]:
        """The report of this period, or why there is none: what is owed is sent all the same."""
        try:
            with self._change() as change:
                return None, change.settle(survey, values, credential, spread)
        except DeviceError as error:
            return error, None

    def _warn_of_names(self, survey: str, values: Values) -> None:
        """Warn once if an attribute's name seems to be misspelt. The report was made all the same.

        What was given is not named: with names and values mixed up it would be a person's.
        """
        with self._change(keep=False) as change:
            asked = [each.name for each in change.terms(survey).attributes]
        missing = [name for name in asked if name not in values]
        unknown = [name for name in values if name not in asked]
        if not missing or not unknown or (survey, *missing) in WARNED:
            return
        WARNED.add((survey, *missing))
        warnings.warn(
            f"survey {survey!r} asks for {', '.join(missing)}, and no value of that name was given; "
            f"of {len(unknown)} other names it asks nothing. Are they misspelt?",
            stacklevel=3,
        )

    def _drop_late(self, survey: str) -> None:
        with self._change() as change:
            change.drop_late(survey)
