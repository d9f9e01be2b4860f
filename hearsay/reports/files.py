"""Published results: opening them, waiting for them, and choosing what to show."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import date
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from analytics.mobility import (
    MobilityReport,
    WindowReport,
    WindowTruth,
    combine,
    with_changes,
    with_lost_presence,
    with_nowcasts,
    with_shortfall,
    with_truth,
)
from analytics.windows import Window
from hearsay.data_directory import COLLECTOR, DataDirectory, known_directory
from hearsay.terminal import console
from hearsay.terminal.console import Step
from hearsay.terminal.dates import when
from protocols.arrays import Whole
from protocols.errors import ResultsError, ServerUnavailable, SettingsError, SurveyError, UnreadableRecord, counted
from protocols.privacy import CentralLoss
from protocols.scheme import Scheme
from protocols.survey import DAY, HOUR, Survey
from servers.private_files import private_directory, write_private
from views.reading import Results
from views.refusing import ADVICE
from views.results import NOWCASTS, MobilityResult, crowds_of, readers_figure

LENGTHS = {"hour": HOUR, "day": DAY, "week": 7 * DAY}
MOST_LISTED = 5
POLL_SECONDS = 1.0
TIMEOUT_SECONDS = 90.0


@contextmanager
def open_results(survey: str | None, data: Path | None, kafka: str | None) -> Iterator[tuple[Results, Path | None]]:
    """The results on a Kafka cluster, or in a data directory; and the directory, if one is named or read.

    Without both, the directory is that of the survey, or the only one that there is.
    """
    if kafka is not None:
        from servers.settings import load  # each takes time that a directory does not need
        from stream_app.kafka import KafkaMessages, Topics

        settings = load().at(kafka).kafka
        yield Results(KafkaMessages(settings, Topics(settings.prefix)), say_left_out), data
        return
    from stream_app.local import LocalStore  # takes time that a cluster does not need

    root = data or known_directory(survey)
    with closing(LocalStore.existing(root / COLLECTOR)) as store:
        yield Results(store, say_left_out), root


def say_left_out(error: UnreadableRecord) -> None:
    """Name a record that is left out, beside what is printed."""
    console.err.print(f"[yellow]left out:[/] {escape(error.message)}", soft_wrap=True)


def with_noted_losses(report: MobilityReport, data: Path) -> MobilityReport:
    """The report with what a data directory has noted of losses of its memo store, and with the truth of a simulation.

    Windows are marked in which presence was lost. If memos were lost, guarantees are those without the cap.
    """
    if not data.exists():
        raise SettingsError(f"there is no data directory {data}", "name the directory of the run or replay")
    directory = DataDirectory(data)
    if directory.loss_note.exists() and isinstance(report, MobilityResult):
        report = report.model_copy(update={"guarantees": report.guarantees.after_a_loss})
    report = with_truth(report, kept_truth(data, report.survey))
    if late := directory.late_events(report.survey):
        report = with_shortfall(report, late)
    return with_lost_presence(report, directory.presence_losses(report.survey))


def keep_truth(data: Path, survey: str, truth: Mapping[Window, WindowTruth]) -> None:
    """Keep what a simulation knows about windows in its data directory, for whoever reads its results later."""
    held = {}
    for window, known in truth.items():
        for name, counts in {"": np.array(known.visitors), **known.people}.items():
            held[f"{window.first} {window.last} {name}"] = counts
    file = BytesIO()
    np.savez_compressed(file, allow_pickle=False, **held)
    write_private(private_directory(DataDirectory(data).truth) / f"{survey}.npz", file.getvalue())


def kept_truth(data: Path, survey: str) -> dict[Window, WindowTruth]:
    """What was kept; nothing, if the devices were not simulated."""
    file = DataDirectory(data).truth / f"{survey}.npz"
    found: dict[Window, dict[str, Whole]] = {}
    if file.exists():
        with np.load(file) as held:
            for key in held:
                first, last, name = key.split(" ", 2)
                found.setdefault(Window(int(first), int(last)), {})[name] = held[key]
    return {window: WindowTruth(int(people.pop("")), people) for window, people in found.items()}


def chosen(results: Results, survey: str | None) -> Survey:
    """The survey with this id, or the only one if no id is given."""
    known = {found.id: found for found in sorted(results.store.surveys(), key=lambda found: found.id)}
    if survey in known:
        return known[survey]
    listed = ", ".join(known) or "none"
    if survey is not None:
        raise SurveyError(f"no survey {survey!r} is published here", f"known surveys: {listed}")
    if len(known) != 1:
        raise SurveyError(f"{len(known)} surveys are published here", f"give the id of one: {listed}")
    return next(iter(known.values()))


def next_period(results: Results, survey: str) -> int:
    """The first period that is not final yet: an interrupted run continues there."""
    return max((key.period or 0 for key in results.finals(survey)), default=-1) + 1


def mobility_of(
    results: Results, survey: str, baseline: range | None = None, data: Path | None = None
) -> MobilityReport:
    """All mobility reports of a survey as one, with the late reports and the changes of each window.

    `baseline` are the periods that count as normal. `data` is a directory in which losses are noted.
    """
    reports = results.mobility(survey)
    if not reports:
        for error in results.unreadable.values():
            raise error
        require_results(results, survey)
        raise ResultsError(
            f"no final result of survey {survey!r} is published",
            "a period becomes final when it is closed: wait for its end and grace, or see `hearsay close`",
        )
    live = results.live(survey)
    lates, lost = (live.lates, live.lost) if live else ({}, ())
    report = with_changes(with_shortfall(combine(reports), lates, lost), baseline)
    shares = (found.shares.items() for found in results.read(NOWCASTS, survey))
    report = with_nowcasts(report, dict(chain.from_iterable(shares)))
    if baseline is not None and not any(window.baseline for window in report.windows):
        raise ResultsError(
            f"no report of periods {baseline[0]} to {baseline[-1]} is published that others could be compared with",
            f"published: periods {report.windows[0].first} to {max(window.last for window in report.windows)}",
        )
    return report if data is None else with_noted_losses(report, data)


def require_results(results: Results, survey: str) -> None:
    """Raise ResultsError if a period that is final has no results: they were refused when they were made."""
    made = set(results.periods(survey))
    lacking = [key.period for key in results.finals(survey) if key.period is not None and key.period not in made]
    if lacking:
        listed = ", ".join(map(str, lacking[:MOST_LISTED])) + (", ..." if len(lacking) > MOST_LISTED else "")
        raise ResultsError(
            f"survey {survey!r} lacks the results of {counted(len(lacking), 'period')} ({listed}): a result of each "
            "could not be made",
            f"the log names the result and its fields; {ADVICE}",
        )


def figure_of(results: Results, survey: Survey) -> CentralLoss | None:
    """What readers of all results of a survey learn about one device; None if the survey has no `central`."""
    if survey.central is None:
        return None
    scheme = Scheme(survey)
    return readers_figure(scheme, crowds_of(scheme, results.histograms(survey.id)))


def wait_for_final(results: Results, survey: str, period: int, step: Step) -> None:
    """Wait until the results of a period are published.

    Raises ServerUnavailable if none are published for TIMEOUT_SECONDS.
    """
    changed, waiting_for = time.monotonic(), 0
    while (found := max(results.periods(survey), default=-1) + 1) <= period:
        if found > waiting_for:
            changed, waiting_for = time.monotonic(), found
        step(waiting_for, period + 1, "waiting for results")
        if time.monotonic() - changed > TIMEOUT_SECONDS:
            raise ServerUnavailable(
                f"period {waiting_for} of survey {survey!r} is sent and closed, but its result is not published",
                "start a worker on the same cluster (hearsay worker), then run this again: nothing is sent twice; if "
                "one is running, its log says what is wrong",
            )
        time.sleep(POLL_SECONDS)


def narrowed(report: MobilityReport, first: int, last: int) -> MobilityReport:
    """The report with one window only."""
    windows = [window for window in report.windows if (window.first, window.last) == (first, last)]
    if not windows:
        what = f"period {first}" if first == last else f"periods {first} to {last} as a window"
        lengths = ", ".join(map(str, sorted({window.last - window.first + 1 for window in report.windows})))
        known = f"{report.windows[0].first} to {max(window.last for window in report.windows)}"
        raise ResultsError(
            f"no report of {what} is published",
            f"published: periods {known}, and windows of {lengths} periods among them",
        )
    return report.model_copy(update={"windows": tuple(windows), "triangle": ()})


def on_days(
    report: MobilityReport, by: str | None, day: date | None, since: date | None, last: int | None
) -> MobilityReport:
    """The report with the windows of one length, of one local day, since a day, or with the last ones of a length."""
    calendar = report.calendar
    kind = by if any(window.kind == by for window in report.windows) else "period"
    if by is not None and kind == "period" and calendar.period != LENGTHS[by]:
        known = ", ".join(dict.fromkeys(window.kind for window in report.windows))
        raise ResultsError(f"no {by} is published", f"published: {known}; a {by} must not be longer than the horizon")
    windows = [window for window in report.windows if by is None or window.kind == kind]
    if since is not None:
        windows = [window for window in windows if calendar.local(calendar.begin(window.first)).date() >= since]
    if day is not None:  # its first and its last instant are on it
        ends = [(calendar.begin(window.first), calendar.end(window.last) - 1) for window in windows]
        on_it = [all(calendar.local(end).date() == day for end in pair) for pair in ends]
        windows = [window for window, whole in zip(windows, on_it, strict=True) if whole]
    if last is not None:
        of_kind = [window for window in windows if window.kind == kind]
        windows = [window for window in windows if window.first >= of_kind[-last:][0].first] if of_kind else []
    if not windows:
        known = when(calendar, report.windows[0].first, max(window.last for window in report.windows))
        raise ResultsError("nothing is published of these days", f"published: {known}")
    return report.model_copy(update={"windows": tuple(windows), "triangle": ()})


def latest(report: MobilityReport) -> WindowReport:
    """The last period; if the report has no single periods, its last window."""
    periods = [window for window in report.windows if window.kind == "period"]
    return max(periods or report.windows, key=lambda window: window.last)


def json_parts(report: MobilityReport, more: Mapping[str, Any]) -> Iterator[str]:
    """A report as JSON, with more keys at its end, in parts of one window each."""
    before, after = report.model_copy(update={"windows": ()}).model_dump_json().split('"windows":[]')
    yield f'{before}"windows":['
    for number, window in enumerate(report.windows):
        yield ("," if number else "") + window.model_dump_json()
    keys = "".join(f",{json.dumps(key)}:{json.dumps(value, default=str)}" for key, value in more.items())
    yield f"]{after.removesuffix('}')}{keys}}}"
