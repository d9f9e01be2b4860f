"""The dossier of a survey, for the person who must answer for it: what is asked, who can learn what, for how long.

`dossier.txt` is its text; here are the values that it names, from the survey alone or from what was collected, too.
"""

import shlex
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from platform import python_version
from tempfile import TemporaryDirectory
from typing import Any

from hearsay.data_directory import DataDirectory
from hearsay.reports.files import chosen, open_results
from hearsay.survey_files import counted_at, read_survey
from hearsay.terminal import console
from hearsay.terminal.dates import when
from hearsay_device.device import Device
from hearsay_device.errors import DeviceError
from hearsay_device.limits import Limits
from pages.document import Element, elements
from protocols.errors import ResultsError, counted
from protocols.planning import factor_of, of_100, plan
from protocols.scheme import Scheme
from protocols.survey import Survey, format_duration
from servers.distribution import DISTRIBUTION
from servers.settings import load
from stream_app.kafka import Topics, retentions
from views.results import Histogram, crowds_of, readers_figure

MOST_VALUES = 12  # of a question, that are listed
NO_LIMITS = Limits(report=1e6, value=1e6, year=1e7, week=1e6, ratio=1, shortest=60, horizon=65535)


def dossier(file: Path, data: Path | None, kafka: str | None) -> tuple[str, list[Element]]:
    """The title and the elements of the dossier of a survey's file; with what was collected, if its place is named."""
    scheme = Scheme(read_survey(file, counted_at(data, kafka)))
    survey, results, where, lost = scheme.survey, list[Histogram](), "", False
    kept = retentions(None, Topics())
    if data is not None or kafka is not None:
        with open_results(survey.id, data, kafka) as (found, _):
            published, results = chosen(found, survey.id), found.histograms(survey.id)
        if Scheme(published).fingerprint != scheme.fingerprint:
            what = f"{file} has other terms than survey {published.id!r} that was collected"
            raise ResultsError(what, "give the file that was published")
        if not results:
            raise ResultsError("no period is final yet", "leave --data and --kafka out, or wait until one is closed")
        kept = {"the data directory, with its log of all reports": "until it is deleted"}
        if kafka is not None:
            settings = load().at(kafka).kafka
            kept = retentions(settings, Topics(settings.prefix))
        # If memos were lost, no memo_cap holds.
        lost = data is not None and DataDirectory(data).loss_note.exists()
        where = f" {shlex.join(console.where(data, kafka))}"
    drawn = plan(Scheme(survey.model_copy(update={"memo_cap": None})) if lost else scheme, alternatives=False)
    known = [asked.precision for asked in drawn.attributes if asked.precision is not None]
    loss, span = None if drawn.central is None else drawn.central["week"].constant, "a week"
    if results:
        loss, span = readers_figure(scheme, crowds_of(scheme, results)), "all periods so far"
    values = dict(drawn) | {
        "scheme": scheme,
        "survey": survey,
        "plan": drawn,
        "file": file.name,
        "where": where,
        "topics": "check" if where else "strimzi",
        "questions": [(asked.name, asked.values, of_100(asked.value_guess)) for asked in drawn.attributes],
        "asked": [(attribute.name, _listed(attribute.values)) for attribute in survey.asked],
        "names": ", ".join(attribute.name for attribute in survey.asked),
        "period": format_duration(survey.period),
        "start": when(survey.calendar, 0),
        "figure": "" if loss is None or loss.epsilon is None else factor_of(loss.epsilon),
        "no_figure": "the survey does not declare `central`" if loss is None else loss.why,
        "span": span,
        "crowd": loss and loss.crowd,
        "residual": loss and 1 / loss.delta,
        "forged": max((asked.forged_report or 0 for asked in drawn.attributes), default=0),
        "error": max((max(exact.if_nobody, exact.if_half) for exact in known), default=0),
        "kept": kept.items(),
        "lost": lost,
        "software": ", ".join(f"{name} {version(name)}" for name in (DISTRIBUTION, "numpy", "scipy")),
        "python": python_version(),
        # What lines are left out for.
        "several": len(survey.asked) > 1 and survey.solution == "smp",
        "hidden": survey.solution.startswith("rs"),
        "memo": survey.longitudinal and not survey.sends_memo,
        "memo_sent": survey.sends_memo,
        "fresh": not survey.longitudinal,
        "noised": survey.presence_epsilon is not None,
        "hides": survey.threshold > 0,
        "units": ", ".join(survey.units),
        "contact": survey.contact,
        "results": results,
    }
    values |= _example(scheme) | (_collected(survey, results) if results else {})
    text = (files("hearsay.reports") / "dossier.txt").read_text("utf-8")
    return f"Dossier: {survey.title or survey.id}", list(elements(text, values))


def _example(scheme: Scheme) -> dict[str, str]:
    """The report of a device, and why one with the usual limits refuses the survey, if it does."""
    survey, refused, report = scheme.survey, "", None
    true = {attribute.name: attribute.values[0] for attribute in survey.attributes}

    def entropy(name: str) -> bytes:  # always the same, so that the example can be made again
        return sha256(f"{scheme.fingerprint} {name}".encode()).digest()

    for limits in (Limits(), NO_LIMITS):
        options: dict[str, Any] = {"limits": limits, "now": survey.start.timestamp, "entropy": entropy}
        with TemporaryDirectory() as kept, Device(Path(kept, "device"), **options) as device:
            try:
                device.join(scheme.terms, pin=scheme.pin)
                report = device.preview(survey.id, true)
                break
            except DeviceError as error:
                refused = refused or error.message.partition(": ")[2]
    says = {} if report is None else report.says
    return {
        "true": ", ".join(f"{name} = {value}" for name, value in true.items()),
        "says": "; ".join(f"{name} = {_listed(said)}" for name, said in says.items()) or "its presence alone",
        "report": "" if report is None else report.report.decode(),
        "refused": refused,
    }


def _collected(survey: Survey, results: Sequence[Histogram]) -> dict[str, Any]:
    sizes = [final.n for final in results if final.n is not None]
    verdicts = [final.integrity.verdict for final in results if final.integrity is not None]
    return {
        "finals": counted(len(results), "period"),
        "finals_span": when(survey.calendar, results[0].period, results[-1].period),
        "published": len(sizes),
        "reports": f"{min(sizes):,} to {max(sizes):,}" if sizes else "0",
        "contradicted": verdicts.count("contradicted"),
        "checked": len(verdicts),
    }


def _listed(values: Sequence[str]) -> str:
    more = len(values) - MOST_VALUES
    return ", ".join(values[:MOST_VALUES]) + (f" and {more:,} more" if more > 0 else "")
