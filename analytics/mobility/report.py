"""Making a mobility report from counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from analytics.mobility.attributes import attribute_report
from analytics.mobility.changes import Measure
from analytics.mobility.history import History
from analytics.mobility.model import Gaps, MobilityReport, Quantity, UniqueVisitors, WindowReport, quantity
from analytics.mobility.publication import Publication, Truth, chosen_windows
from analytics.mobility.suppression import merged_gaps
from analytics.windows.calendar import Window
from analytics.windows.presence_noise import scale
from protocols.survey import Survey


def mobility_report(
    history: History,
    windows: Iterable[Window] | None = None,
    *,
    baseline: range | None = None,
    smoothing: bool = False,
    truth: Mapping[Window, Truth] | None = None,
    ending: int | None = None,
) -> MobilityReport:
    """The report on some windows; by default on every period, hour, day and week, and the days since the beginning.

    `baseline` are the periods that count as normal. `smoothing` puts smoothed shares beside the raw ones. `truth` is
    what a simulation knows, for comparison. `ending` tells only of windows that end with this period; what may be said
    of them is settled with all the others in mind.
    """
    survey = history.scheme.survey
    kinds = chosen_windows(survey, history.periods, windows)
    publication = Publication(history, kinds, baseline, smoothing, truth or {})
    epsilon = survey.presence_epsilon
    return MobilityReport(
        survey=survey.id,
        title=survey.title or survey.id,
        fingerprint=survey.fingerprint,
        start=survey.start,
        period_seconds=int(survey.period.total_seconds()),
        horizon=survey.horizon,
        minimum=survey.minimum,
        confidence=history.confidence,
        presence="exact" if epsilon is None else "noised",
        presence_scale=None if epsilon is None else scale(epsilon),
        notes=_notes(survey),
        windows=tuple(_window(publication, window) for window in kinds if ending in (None, window.last)),
        triangle=tuple(
            UniqueVisitors(
                first=window.first,
                last=window.last,
                visitors=None if window in publication.silent else quantity(history.visitors(window)),
            )
            for window in publication.triangle
            if ending in (None, window.last)
        ),
    )


def _window(publication: Publication, window: Window) -> WindowReport:
    history, survey = publication.history, publication.survey
    header = WindowReport(
        first=window.first,
        last=window.last,
        begin=survey.bounds(window.first)[0],
        end=survey.bounds(window.last)[1],
        kind=publication.kinds[window],
        suppressed=publication.silent.get(window),
    )
    if header.suppressed:
        return header
    truth, changes = publication.truth.get(window), publication.changes()
    then, normal = changes.since_then(window, _one(history)), changes.since_normal(window, _one(history))
    said = {
        "visitors": quantity(history.visitors(window)),
        **_loyalty(history, window),
        "change": then[0] if then else None,
        "baseline": normal[0] if normal else None,
        "shortfall": history.shortfall(window),
        "truth": truth.visitors if truth else None,
        "attributes": tuple(attribute_report(publication, q, window) for q in history.scheme.questions),
    }
    return header.model_copy(update=said)


def _one(history: History) -> Measure:
    return lambda window: history.visitors(window)[None]


def _loyalty(history: History, window: Window) -> dict[str, Quantity | tuple[Gaps, ...]]:
    """New and returning visitors, and how long the returning ones had been away; of few people nothing is said."""
    counts, minimum = history.gap_counts(window), history.scheme.survey.minimum
    new, returning = int(counts[-1]), int(counts[:-1].sum())
    if len(counts) == 1 or any(0 < part < minimum for part in (new, returning)):
        return {}  # a horizon of one period tells nothing of who comes back
    cells = np.minimum(np.arange(1, len(counts) + 1), window.length)  # periods whose cells a gap's visitors come from

    def told(low: int, high: int) -> Quantity:
        return quantity(history.counted(int(counts[low - 1 : high].sum()), int(cells[low - 1 : high].sum())))

    gaps = tuple(
        Gaps(shortest=low, longest=high, visitors=told(low, high))
        for low, high in merged_gaps(counts[:-1].tolist(), minimum)
    )
    horizon = len(counts)
    return {"new": told(horizon, horizon), "returning": told(1, horizon - 1), "gaps": gaps}


def _notes(survey: Survey) -> tuple[str, ...]:
    """What a reader must know, in the order in which it matters."""
    if survey.presence_epsilon is None:
        presence = (
            "Numbers of visitors are exact. That somebody reported is not protected by local privacy; only answers are."
        )
    else:
        presence = (
            f"Numbers of visitors carry noise of scale {scale(survey.presence_epsilon):g} per count, "
            "drawn once; shares are rounded to what their error allows."
        )
    notes = [
        presence,
        "Shares are unbiased estimates from noisy answers: they may be negative and need not sum to 100 %. "
        "Intervals hold the truth 95 times out of 100. The consistent shares beside them are the nearest histogram.",
        "Longer windows count every device once, by its first value in the window.",
    ]
    if survey.horizon > 1:
        notes.append(
            f"New visitors are those not seen for {survey.horizon} periods; at the beginning of the survey all are."
        )
    if survey.minimum:
        notes.append(
            f"Nothing is said of fewer than {survey.minimum} visitors, "
            "nor of windows from which so few could be worked out."
        )
    return tuple(notes)
