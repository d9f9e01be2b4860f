"""`hearsay serve`, and its log: the embedded app, which counts what is written and closes periods in time."""

import asyncio
import errno
import shlex
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median_high

import structlog
import uvloop

from gateway.door import Times, closing_time
from gateway.http import most_connections
from gateway.service import Metrics, StateFile, TokenKeys
from hearsay.data_directory import DataDirectory
from hearsay.reports.serving import Published, listening
from hearsay.running.collecting import THIS_PROCESS
from hearsay.serving.running import Exposure, run
from hearsay.serving.try_page import try_pages
from hearsay.survey_files import counted_at, read_survey
from protocols.errors import DeliveryError, StateError, SurveyDefect, SurveyError
from protocols.planning import error_of_usual_noise
from protocols.scheme import Scheme
from protocols.survey import Survey, undecided
from protocols.wire import CLOCK, FRAME, Clock, collectable, encode_clock, last_due, named
from stream_app.local import EmbeddedApp
from views.local import ViewsBeside

DASHBOARD_HOST = "127.0.0.1"
SHOWING = 99
"""How many reports are compared: more than half of them must be wrong to hold up a survey."""
LONGEST = timedelta(weeks=1)
SOONER = 2.0  # seconds: the door closes up to one earlier than a period
log = structlog.get_logger(__name__)


class ReportedTimes(Times):
    """The clock of the machine beside what reports say: a clock that is far ahead closes nothing.

    What is closed stays closed: with a clock that is a year ahead, all reports of a year would be late. Devices have
    clocks of their own. So a period is closed only if it is at most one period ahead of the middle one of the last
    reports. Where no reports come there is nothing to compare with, and nothing that would be late: the clock is
    believed.

    Reports count for two periods (`LONGEST` at most), by `elapsed`, which no change of the clock moves.

    `closed` has the last closed period of each survey: reports of such periods say nothing, they may be of any age.
    """

    def __init__(self, closed: Mapping[str, int], elapsed: Callable[[], float]) -> None:
        self._closed = closed
        self._elapsed = elapsed
        self._seen: dict[str, deque[tuple[float, int]]] = {}  # by survey: when, and of which period
        self._held: set[str] = set()

    def closed_through(self, survey: str) -> int:
        return self._closed.get(survey, -1)

    def note(self, survey: Survey, period: int) -> None:
        if self.closed_through(survey.id) < period <= survey.calendar.last - 2:
            self._seen.setdefault(survey.id, deque(maxlen=SHOWING)).append((self._elapsed(), period))

    def moment(self, survey: Survey, now: float) -> float:
        since = self._elapsed() - min(2 * survey.period, LONGEST).total_seconds()
        periods = [period for at, period in self._seen.get(survey.id, deque()).copy() if at > since]
        middle = median_high(periods) if periods else None
        if middle is None or now < closing_time(survey, middle + 2).timestamp():
            if survey.id in self._held:
                self._held.discard(survey.id)
                log.warning("periods are closed again", survey=survey.id, reported=middle)
            return now
        if survey.id not in self._held:
            self._held.add(survey.id)
            log.error(
                "this machine's clock is far ahead of the reports: no period is closed; set the clock right",
                survey=survey.id,
                reported=middle,
                clock=survey.period_of(datetime.fromtimestamp(now, UTC)),
            )
        first_open = min(self.closed_through(survey.id) + 1, survey.calendar.last)
        return min(now, closing_time(survey, first_open).timestamp() - SOONER)


class EmbeddedLog:
    """Frames are synced before `write` returns, results are published by `tend`. A failure must end the process.

    Periods are closed by the time of day, `now`, if that agrees with the reports (`ReportedTimes`). `check` raises what
    has gone wrong with results, where they are made in another thread.
    """

    def __init__(
        self,
        app: EmbeddedApp,
        surveys: Sequence[Survey],
        now: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.partitions = app.partitions
        self._check = check
        self._app = app
        self._surveys = {survey.id: survey for survey in surveys}
        self._now = now
        self._unpublished = True
        self._thread = ThreadPoolExecutor(1, "counting")
        self._closed = {survey.id: app.closed_through(survey.id) for survey in surveys}
        self.times = ReportedTimes(self._closed, elapsed)
        for survey in surveys:
            self.times.note(survey, app.begun_through(survey.id))
        self._close_due()
        app.flush()

    async def write(self, frames: list[tuple[int, bytes]]) -> None:
        await self._in_thread(self._write, frames)

    def _write(self, frames: list[tuple[int, bytes]]) -> None:
        for _, value in frames:
            if (of := named(FRAME, value)) is not None and of.survey in self._surveys:
                self.times.note(self._surveys[of.survey], of.period)
        self._close_due()
        for partition, value in frames:
            self._app.send(partition, FRAME, value)
        self._app.sync()
        self._unpublished = True

    async def tend(self) -> None:
        """Close the periods that are due, and publish what changed."""
        await self._in_thread(self._publish)

    def _publish(self) -> None:
        self._check()
        self._close_due()
        if self._unpublished:
            self._unpublished = False
            self._app.flush()

    async def close(self) -> None:
        await self._in_thread(self._publish)
        await self._in_thread(self._end)
        self._thread.shutdown()

    def _end(self) -> None:
        self._app.close()
        self._check()

    async def _in_thread(self, do: Callable[..., None], *arguments: object) -> None:
        """After an error what is counted in memory is ahead of what was written: only a new start makes both agree."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, do, *arguments)
        except (DeliveryError, OSError) as error:
            why = error.message if isinstance(error, DeliveryError) else error.strerror
            short = isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)
            needed = "there are enough file descriptors (ulimit -n)" if short else "the disk has space and no faults"
            raise StateError(
                f"reports cannot be written: {why}", f"make sure {needed}, then start again: nothing is lost"
            ) from error

    def _close_due(self) -> None:
        """Close every period whose end plus grace has passed. Reports that are written after this are late for it."""
        now = self._now()
        for survey in self._surveys.values():
            due = last_due(survey, datetime.fromtimestamp(self.times.moment(survey, now), UTC))
            if due > self._closed[survey.id]:
                if due > self._closed[survey.id] + 1:
                    first = self._closed[survey.id] + 1
                    log.warning("several periods are closed at once", survey=survey.id, first=first, last=due)
                record = encode_clock(Clock(survey.id, due), self._app.clock_key)
                for partition in range(self.partitions):
                    self._app.send(partition, CLOCK, record)
                self._closed[survey.id] = due
                self._unpublished = True


def read_surveys(files: Sequence[Path], directory: Path) -> tuple[list[Scheme], dict[str, str]]:
    """The surveys in files, compiled and tried; and by file why one cannot be served, where this release fails at it.

    What is counted in the directory already keeps the version of its terms.

    A mistake in a file is an error of whoever starts. A defect of this release is not: the other surveys are served.
    """
    schemes: list[Scheme] = []
    defects: dict[str, SurveyDefect] = {}
    for file in files:
        try:
            schemes.append(collectable(read_survey(file, counted_at(directory))))
        except SurveyDefect as error:
            defects[str(file)] = error
    if not schemes:
        raise next(iter(defects.values()))
    for name, defect in defects.items():
        log.error("a survey cannot be served", file=name, error=defect.message, exc_info=defect.__cause__)
    return schemes, {name: defect.message for name, defect in defects.items()}


def _require_decided_presence(survey: Survey) -> None:
    """Refuse a survey that does not say whether its numbers have noise, or which exact ones are shown."""
    if not survey.presence_is_decided:
        raise undecided(survey.id, error_of_usual_noise(survey))
    if survey.version == 2 and survey.presence_epsilon is None and "minimum" not in survey.model_fields_set:
        raise SurveyError(
            f"survey {survey.id!r} names no minimum: results of a single person's report would be published",
            "write presence_epsilon: 1, which protects whether a device reported; or minimum: 20, which hides numbers "
            "of fewer than 20 reports, but not how many devices stayed away; or minimum: 0, which publishes every "
            "number. Only minimum: 0 keeps the fingerprint of a survey that runs",
        )


def serve_surveys(
    schemes: Sequence[Scheme],
    directory: Path,
    exposure: Exposure,
    say: Callable[[str], None],
    refused: Mapping[str, str] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. `refused` are surveys that cannot be served, with the reason."""
    exposure.check()
    connections = most_connections()
    viewing = connections // 4  # connections of the dashboard
    data = DataDirectory(directory)
    surveys = [scheme.survey for scheme in schemes]
    for survey in surveys:
        if survey.clock != "wall":
            raise SurveyError(
                f"survey {survey.id!r} has clock: source, and devices cannot close periods",
                "give it clock: wall, and an id of its own",
            )
        _require_decided_presence(survey)
        data.check_destination(survey.id, THIS_PROCESS)
    served = {scheme.survey.id: scheme for scheme in schemes}
    views = ViewsBeside([data.results])
    keys_of_data = data.clock_key(), data.presence_key()
    app = EmbeddedApp(data.collector, surveys, *keys_of_data, published=views, closed=views.close)
    to = EmbeddedLog(app, surveys, check=views.check)
    state = StateFile(directory / "gateway.state")
    has_keys = exposure.credentials or state.path.exists()
    keys = TokenKeys(state, served.get, to.times, time.time) if has_keys else None
    results = Published(served, directory, None).dashboard()
    names = ", ".join(served)

    def started(address: str) -> None:
        say(f"Collecting {names} at {address}")
        if pages and not exposure.credentials:  # the page's device has none
            say(f"A device in the browser: {address}/try")
        say(f"Results: hearsay report {next(iter(served))} --data {shlex.quote(str(directory))}")

    async def dashboard(metrics: Metrics) -> None:
        """Reached from this machine only, whatever address devices use: at the next port, if it is free."""
        next_port = exposure.port and exposure.port + 1
        async with listening(results, DASHBOARD_HOST, next_port, viewing, beside=True) as address:
            say(f"Results as they come: {address}")
            await asyncio.Event().wait()

    pages = try_pages(served, data.collector) if exposure.only_here else {}
    serving = run(
        exposure,
        served,
        to,
        keys,
        say,
        started,
        dashboard,
        connections - viewing,
        pages=pages,
        refused={**(refused or {}), **app.refused},
    )
    uvloop.run(serving)
