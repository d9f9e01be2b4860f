"""What people are drawn from, of published results: finals by gap, and the answers of periods and windows."""

from collections.abc import Mapping, Sequence

import numpy as np

from analytics.mobility import Answers, CountHistory, MobilityReport, Quantity, quantity
from analytics.windows import Window
from lab.learning.model import Measured, draw_records
from lab.learning.model import fit as fit_pairs
from lab.learning.synthesis import published_tables
from lab.people.drawing import Aggregates, Day, Following
from lab.people.fitting import Windows, fit
from lab.people.splitting import ByValue
from producers.people import Flows, proportional, whole
from protocols.errors import ResultsError, SettingsError
from protocols.survey import DAY, Survey, origin_and_destination


def published_aggregates(
    survey: Survey,
    report: MobilityReport,
    history: CountHistory | None,
    periods: range,
    lasting: Sequence[str],
    stay: tuple[str, float] | None,
    seed: int,
) -> Aggregates:
    """What is published about these periods; `stay` is an attribute, and the share of people who keep it.

    `history` has the counts of a survey that publishes everything, by gap. Of others the windows are known.
    """
    asked = {one.name: one for one in report.attributes if not one.axes}
    if unknown := [name for name in [*lasting, *([stay[0]] if stay else [])] if name not in asked]:
        raise SettingsError(f"the survey does not ask {unknown[0]!r}", f"it asks: {', '.join(asked)}")
    if survey.visitors is not None:
        raise ResultsError(
            "this survey counts the visitors of calendar units, not gaps: nothing tells on which days people return",
            "draw people from a survey with a horizon",
        )
    published = _published_windows(report, periods)
    if hidden := [t for t in periods if Window(t, t) not in published]:
        raise ResultsError(
            f"of {len(hidden)} periods too little is published, the first is period {hidden[0]}",
            "choose periods without them: --period FIRST:LAST",
        )
    first, last = periods[0], periods[-1]
    horizon, notes = min(report.horizon, len(periods)), list[str]()
    if history is None:
        if len(periods) > 1 and all(window.length == 1 for window in published):
            raise ResultsError(
                "no window of several of these periods is published: nothing tells on which days people return",
                "choose more periods, or draw people from a survey that publishes exact numbers",
            )
        windows = _as_windows(published, first)
        flows = whole(fit(windows))
    else:
        runs = [Window(s, e) for s in periods for e in range(s, min(s + horizon - 1, last) + 1)]
        windows = _as_windows({run: quantity(history.visitors(run)) for run in runs}, first)
        flows, uncounted = _by_gap(history)
        if uncounted:
            notes.append(f"{uncounted:,} reports refer to earlier ones that came late: these people count as new")
    daily = {name: one.values for name, one in asked.items() if name not in lasting}
    records, pairs = [], set()
    for place, period in enumerate(periods):
        found = _records(report, period, int(flows[:, place + 1].sum()), set(lasting), seed + place)
        records.append(found[0])
        pairs |= found[1]
    notes.append(
        "pairs of attributes that are followed where they are not noise: "
        + (", ".join(sorted(pairs)) if pairs else "none was asked, attributes of a day are independent")
    )
    begins = [report.calendar.local(report.calendar.begin(period)) for period in periods]
    days = [begin.date().isoformat() for begin in begins]
    if report.calendar.period < DAY:
        days = [begin.isoformat(timespec="minutes") for begin in begins]
    return Aggregates(
        source={
            "survey": report.survey,
            "fingerprint": report.fingerprint,
            "first_period": first,
            "last_period": last,
            "budget": 0,
            "about": f"of periods {first} to {last} of survey {report.survey}",
        },
        days=days,
        flows=flows,
        horizon=horizon,
        windows=windows,
        lasting={name: (asked[name].values, _lasting(report, history, name, periods)) for name in lasting},
        daily={name: values for name, values in daily.items() if any(name in day for day in records)},
        records=records,
        following=_following(report, stay, daily),
        notes=notes,
    )


def _published_windows(report: MobilityReport, periods: range) -> dict[Window, Quantity]:
    """The visitors of all windows within some periods, as far as they are published."""
    known = {Window(run.first, run.last): run.visitors for run in report.triangle}
    known |= {Window(one.first, one.last): one.visitors for one in report.windows}
    inside = {one: visitors for one, visitors in known.items() if one.first in periods and one.last in periods}
    return {one: visitors for one, visitors in inside.items() if visitors is not None}


def _as_windows(known: Mapping[Window, Quantity], first: int) -> Windows:
    bounds = np.array([(run.first - first + 1, run.last - first + 1) for run in known])
    people = np.array([visitors.value for visitors in known.values()], dtype=np.float64)
    errors = np.array([visitors.error for visitors in known.values()], dtype=np.float64)
    return Windows(bounds, people, errors)


def _by_gap(history: CountHistory) -> tuple[Flows, int]:
    """The flows, and how many visits refer to earlier reports that were not counted.

    Who was there before the first period is new in it. So is who was away for a horizon or longer.
    """
    days = len(history.periods)
    flows, uncounted = np.zeros((days + 2, days + 2), dtype=np.int64), 0
    for day, period in enumerate(history.periods, 1):
        counts = history.gap_counts(Window(period, period))
        known = min(len(counts), day) - 1
        flows[day - known : day, day] = counts[:known][::-1]
        flows[0, day] = counts[known:].sum()
    for day in range(1, days + 1):
        there, leaving = int(flows[:, day].sum()), int(flows[day].sum())
        if leaving > there:
            kept = proportional(flows[day], there)
            flows[0] += flows[day] - kept
            flows[day] = kept
            uncounted += leaving - there
        flows[day, -1] = there - int(flows[day].sum())
    return flows, uncounted


def _lasting(report: MobilityReport, history: CountHistory | None, name: str, periods: range) -> ByValue:
    """The people of periods by value, and of windows by their first value: a lasting one is the same on all days."""
    found = _of_periods(report, name, periods) if history is None else _by_value(history, name, report.horizon)
    if not len(found.bounds):
        raise ResultsError(f"nothing is published about {name!r} in these periods", "leave it out of --lasting")
    return found


def _of_periods(report: MobilityReport, name: str, periods: range) -> ByValue:
    """The people of single periods by value."""
    bounds, people, error = [], [], []
    for period in periods:
        window = report.window(period, period)
        values = next((part.values for part in window.attributes if part.name == name), None)
        if values is None or window.visitors is None or not np.isfinite(values.share.error).all():
            continue
        visitors = window.visitors.value or 0.0
        bounds.append((period - periods[0] + 1, period - periods[0] + 1))
        people.append(np.asarray(values.share.value) * visitors)
        error.append(np.asarray(values.share.error) * visitors)
    return ByValue(np.array(bounds), np.array(people), np.array(error))


def _by_value(history: CountHistory, name: str, horizon: int) -> ByValue:
    first, last = history.periods[0], history.periods[-1]
    horizon = min(horizon, len(history.periods))
    lengths = sorted({horizon, *(2**power for power in range(horizon.bit_length()))}) if history.by_gap else [1]
    bounds, people, error = [], [], []
    for length in lengths:
        for begin in range(first, last - length + 2):
            window = Window(begin, begin + length - 1)
            if history.answers(name, window) > 0:
                answers = Answers.of(history, name, window)
                visitors = float(answers.visitors.value)
                if np.isfinite(answers.shares.error).all():
                    bounds.append((begin - first + 1, window.last - first + 1))
                    people.append(answers.shares.value * visitors)
                    error.append(answers.shares.error * visitors)
    return ByValue(np.array(bounds), np.array(people), np.array(error))


def _records(report: MobilityReport, period: int, people: int, lasting: set[str], seed: int) -> tuple[Day, set[str]]:
    """The records of a period, as `hearsay synthesize` draws them, and the pairs they follow."""
    measured = published_tables(report, report.window(period, period))
    pairs = {pair: shares for pair, shares in measured.pairs.items() if not set(pair) & lasting}
    ones = {name: shares for name, shares in measured.ones.items() if name not in lasting}
    left = {name: size for name, size in measured.sizes.items() if name not in lasting}
    if not people or not (ones or pairs):
        return {}, set()
    model = fit_pairs(Measured(left, ones, pairs))
    return draw_records(model, people, seed), {"*".join(pair) for pair in model.edges}


def _following(
    report: MobilityReport, stay: tuple[str, float] | None, daily: dict[str, tuple[str, ...]]
) -> Following | None:
    """Who keeps a value, or goes on from where a transition ended."""
    if stay is not None:
        if stay[0] not in daily:
            raise SettingsError(f"{stay[0]!r} is lasting and cannot change", "name it in --lasting or in --stay")
        same = np.arange(len(daily[stay[0]]))
        return Following(stay[0], stay[1], same, same)
    for name, values in daily.items():
        if report.asked(name).role == "transition":
            pairs = [origin_and_destination(value) for value in values]
            places = {place: number for number, place in enumerate(dict.fromkeys(sum(pairs, ())))}
            begins, ends = np.array([[places[place] for place in pair] for pair in pairs]).T
            return Following(name, 1.0, begins, ends)
    return None
