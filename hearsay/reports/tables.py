"""A report on a terminal of 80 columns: visitors (or devices) of each period, then the answers of one window.

Below them are verdicts on periods, and estimates that forged reports move less.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analytics.estimation import quantile
from analytics.integrity import ALPHA, MEANINGS, CheckName, Integrity, robust
from analytics.mobility import (
    AskedAttribute,
    AttributeReport,
    Axis,
    MobilityReport,
    Quantities,
    Quantity,
    Shares,
    Sizes,
    WindowReport,
)
from hearsay.terminal import console
from hearsay.terminal.dates import when
from pages.words import words as words_of
from protocols.arrays import Floats
from protocols.errors import SettingsError, counted
from protocols.mechanisms import PlanarChannel
from protocols.privacy import CentralLoss
from protocols.scheme import Scheme
from protocols.survey import Calendar

MOST_VALUES = 12
MOST_ATTRIBUTES = 12  # after a run
MOST_COLUMNS = 4  # of a table of pairs
MOST_ROWS = 40
BAR = 16
CLEARLY_BETTER = 0.9  # times the error of a period alone
LABEL = 28


NOTHING = "–"


def report_tables(report: MobilityReport, window: WindowReport, most: int | None = None) -> Iterator[RenderableType]:
    """Of all periods, of calendar units if there are any, and of the answers of a window."""
    yield visitors_table(report)
    yield from units_table(report)
    yield answers_table(report, window, most)


def visitors_table(report: MobilityReport) -> Table:
    """One row for each period: visitors, new and returning ones, and the unique visitors since the beginning."""
    periods = [window for window in report.windows if window.kind == "period"] or report.windows
    since = {window.last: window for window in report.windows if periods and window.first == periods[0].first}
    many = _words(report)["many"]
    columns: dict[str, Callable[[WindowReport], str]] = {many: lambda window: _count(window.visitors)}
    if any(window.truth is not None for window in periods):
        columns["truth"] = lambda window: _number(window.truth)
    if any(window.baseline is not None for window in periods):
        columns["vs baseline"] = lambda window: _percent(None if window.baseline is None else window.baseline.percent)
    if report.horizon > 1 or _units(report):  # otherwise nobody is known to return
        columns["new"] = lambda window: _count(window.new)
        columns["returning"] = lambda window: _count(window.returning)
    if len(since) > 1:
        columns["unique so far"] = lambda window: _count(since[window.last].visitors) if window.last in since else ""
    cells = {column: [cell(window) for window in periods] for column, cell in columns.items()}
    nowhere = [column for column, entries in cells.items() if set(entries) == {NOTHING}]
    lacking = {column for column, entries in cells.items() if NOTHING in entries and column not in nowhere}
    shown = {column: entries for column, entries in cells.items() if column not in nowhere}
    table = console.table("period", *shown, left=("period",), title=many.capitalize(), caption_justify="left")
    for window, *row in zip(periods, *shown.values(), strict=True):
        table.add_row(when(report.calendar, window.first, window.last), *row)
    table.caption = "\n".join(_footnotes(report, lacking, nowhere)) or None
    return table


def units_table(report: MobilityReport) -> Iterator[Table]:
    """One row for each calendar unit, and for the newest one that is open; no table where none are counted."""
    shown = [window for window in _units(report) if window.kind != "ever"]
    if not shown:
        return
    many = _words(report)["many"]
    title = f"\nUnique {many} of calendar units"
    table = console.table("unit", "", many, "new", "returning", left=("unit", ""), title=title)
    for window in sorted(shown, key=lambda window: (window.unit, window.first)):
        counts = (_count(part) for part in (window.visitors, window.new, window.returning))
        table.add_row(window.kind, when(report.calendar, window.first, window.last), *counts)
    yield table


def _units(report: MobilityReport) -> list[WindowReport]:
    """The windows of calendar units; none where windows are counted by gaps."""
    units = ("day", "week", "month", "year", "ever")
    return [window for window in report.windows if report.horizon == 1 and window.unit in units]


def _footnotes(report: MobilityReport, lacking: set[str], nowhere: Sequence[str]) -> Iterator[str]:
    """What explains the table: in some columns something is `lacking`, others are left out as it is known `nowhere`."""
    if nowhere:
        yield f"not published for any period: {', '.join(nowhere)}"
    if lacking - {"vs baseline"}:
        yield f"{NOTHING} is not shown: {_too_few(report)}"
    if "vs baseline" in lacking:
        yield f"{NOTHING} against the baseline: part of it, or nothing comparable in it is published"
    if any(window.presence_lost for window in report.windows):
        yield "some windows may count devices twice: presence records were lost"


def answers_table(report: MobilityReport, window: WindowReport, most: int | None = None) -> RenderableType:
    """The answers of one window: estimates, half the width of their intervals, and the truth where it is known.

    `most` limits for how many attributes; the others are counted.
    """
    head = f"\nAnswers, {when(report.calendar, window.first, window.last)}"
    if window.suppressed or window.visitors is None:
        nothing = f"Numbers of {_too_few(report)} are not shown, because they say little."
        if window.suppressed == "difference":
            nothing = f"Together with a window inside it, this one would show a number of {_too_few(report)}."
        return Group(Text(f"{head}: suppressed", style="italic"), Text(nothing))
    words = _words(report)
    head += f": {_count(window.visitors)} {words['many']}"
    if window.baseline is not None:
        head += f", {_percent(window.baseline.percent)} against {window.baseline.against}"
    tables = [
        _answers(report.asked(attribute.name), attribute, everybody, words["people"])
        for attribute in window.attributes[:most]
        if (everybody := window.counted_by(attribute)) is not None
    ]
    if left := len(window.attributes) - len(tables):
        tables.append(Text(f"\nand {left:,} more attributes: `hearsay report` shows all of them", style="dim"))
    if not tables:
        tables = [Text("No answers are published for this window: choose a period with --period.")]
    return Group(Text(head, style="italic"), *tables)


def _too_few(report: MobilityReport) -> str:
    return f"fewer than {report.minimum} {_words(report)['many']}"


def _words(report: MobilityReport) -> dict[str, str]:
    return words_of(attribute.role for attribute in report.attributes)


def _answers(asked: AskedAttribute, attribute: AttributeReport, visitors: Quantity, called: str) -> RenderableType:
    if attribute.suppressed:
        return Text(f"  {attribute.name}: suppressed, too few answers", style="dim")
    head = Text(f"\n{attribute.name}", style="bold")
    head.append(f"  {asked.mechanism}, {counted(attribute.n or 0, 'answer')}", style="not bold dim")
    if attribute.values is None:
        return Group(head, Table())
    people, truth, normal = attribute.values.people(visitors), attribute.values.truth, attribute.values.baseline
    if asked.axes and min(len(axis.values) for axis in asked.axes) <= MOST_COLUMNS:
        return Group(head, _pairs(asked.axes, people))
    now = _nowcasts(attribute.values, visitors)
    extra = [] if now is None else ["nowcast", "± 95 %"]
    extra += [*([] if truth is None else ["truth"]), *([] if normal is None else ["vs baseline"])]
    table = console.table("", called, "± 95 %", *extra, "")
    table.columns[0].min_width = LABEL
    listed = np.argsort(-people.value, kind="stable")
    if asked.mechanism == "threshold":
        listed = np.arange(len(people.value))
    most, width = people.value.max(), BAR if now is None else BAR // 2
    for place in listed[:MOST_VALUES]:
        one = people.at(place)
        row: list[RenderableType] = [Text(asked.values[place]), _count(one), _half_width(one)]
        if now is not None:
            row += [_count(now.at(place)), _half_width(now.at(place))]
        if truth is not None:
            row.append(_number(truth[place]))
        if normal is not None:
            row.append(_percent(normal.percent.at(place)))
        table.add_row(*row, "█" * round(width * max(0, one.value or 0) / most if most > 0 else 0))
    if len(listed) > MOST_VALUES:
        table.add_row(f"and {len(listed) - MOST_VALUES:,} more", style="dim")
    return Group(head, table, *_of_sets(asked, attribute.sizes))


def _of_sets(asked: AskedAttribute, sizes: Sizes | None) -> Iterator[Text]:
    """What the numbers count, how large sets are, and whether many are larger than what is counted."""
    if sizes is not None and sizes.mean.value is not None:
        half = (sizes.mean.high or 0) - sizes.mean.value
        mean = f"On average they have {sizes.mean.value:.2f} ± {half:.2f}"
        yield Text(f"Devices with it: they can have several, so numbers do not add up. {mean}.", style="dim")
        if sizes.overflow:
            text = f"At least {sizes.full.low:.1%} have {asked.several} or more, of which {asked.several} are counted"
            yield Text(f"{text}: these numbers may be too low. Ask with a larger `several`.", style="yellow")


def _nowcasts(shares: Shares, visitors: Quantity) -> Quantities | None:
    """The people by nowcasts; None unless they say clearly more than the period alone, as in its first season."""
    if shares.nowcast is None or not (shares.nowcast.error < CLEARLY_BETTER * shares.share.error).any():
        return None
    return shares.model_copy(update={"share": shares.nowcast}).people(visitors)


def _pairs(axes: Sequence[Axis], people: Quantities) -> Table:
    """All pairs of a cross with half the width of their intervals; the attribute with fewer values has the columns."""
    first, second = axes
    places = np.arange(len(first.values) * len(second.values)).reshape(len(first.values), len(second.values))
    rows, columns = first, second
    if len(second.values) > MOST_COLUMNS:
        rows, columns, places = second, first, places.T
    table = Table(box=None, pad_edge=False)
    table.add_column(Text(f"{rows.name} \\ {columns.name}"), overflow="fold")
    for value in columns.values:
        table.add_column(Text(value), justify="right", overflow="fold")
    for value, line in zip(rows.values[:MOST_ROWS], places, strict=False):
        cells = [people.at(place) for place in line]
        table.add_row(Text(value), *(f"{_count(cell)} ± {_half_width(cell)}" for cell in cells))
    if len(rows.values) > MOST_ROWS:
        table.add_row(f"and {len(rows.values) - MOST_ROWS:,} more", style="dim")
    return table


def _count(quantity: Quantity | None) -> str:
    return NOTHING if quantity is None or quantity.value is None else f"{round(quantity.value):,}"


def _percent(percent: Quantity | None) -> str:
    if percent is None or percent.value is None:
        return NOTHING
    wide = percent.low is not None and percent.high is not None and percent.high > percent.low
    half = f" ± {((percent.high or 0) - (percent.low or 0)) / 2:.1f}" if wide else ""
    return f"{percent.value:+z.1f}{half} %"


def _half_width(quantity: Quantity) -> str:
    """Half the width of the interval; on a border, how far from it the number can be.

    An interval outside of what is possible is cut to a point, and 0 ± 0 would look like a number without noise.

    >>> _half_width(Quantity(value=40.0, error=10.0, low=20.0, high=60.0))
    '20'
    >>> _half_width(Quantity(value=0.0, error=10.0, low=0.0, high=0.0))
    'at most 20'
    """
    if quantity.low is None or quantity.high is None:
        return ""
    if quantity.low < quantity.high or not quantity.error:
        return _number((quantity.high - quantity.low) / 2)
    away = quantile(0.95) * quantity.error
    return f"at most {_number(away)}" if quantity.low <= 0 else f"at least {_number(quantity.low - away)}"


def _number(value: float | None) -> str:
    """A whole number; what is rounded to zero has no sign.

    >>> _number(-0.2)
    '0'
    """
    return "" if value is None else f"{value:z,.0f}"


def verdict_lines(report: MobilityReport) -> Iterator[Text]:
    """A line about all periods, and one for each alarm."""
    alone = (window for window in report.windows if window.first == window.last)
    found = {window.first: window.integrity for window in alone if window.integrity is not None}
    if not found:
        return
    unusual = {period: verdict for period, verdict in found.items() if verdict.alarms}
    contradicted = sum(verdict.verdict == "contradicted" for verdict in found.values())
    text = f"\nIntegrity: {contradicted} of {len(found)} periods contradict honest devices"
    yield Text(f"{text} (false alarms ever: at most {ALPHA:.0%})", style="bold red" if contradicted else "")
    for period, verdict in sorted(unusual.items()):
        for name, check in verdict.alarms:
            yield Text(
                f"  {when(report.calendar, period)}{', ' + name if name else ''}: {MEANINGS[check]}"
                f"{_figures(report.calendar, verdict, name, check)}"
            )
    last = found[max(found)]
    for one in last.attributes:
        noticed = [check.smallest for check in one.checks.values() if check.smallest is not None]
        if noticed:
            noticed_from = f"forged reports would have been noticed from a share of {min(noticed):.1%} on"
            yield Text(f"  {one.name}, {when(report.calendar, max(found))}: {noticed_from}", style="dim")


def _figures(calendar: Calendar, verdict: Integrity, name: str, check: CheckName) -> str:
    one = verdict.attribute(name)
    if one is not None and check != "flow":
        return f" (p = {one.checks[check].p:.2g}, {one.checks[check].adjusted:.2g} for all periods and checks)"
    flow = verdict.flow if one is None else one.flow
    assert flow is not None, "it gave the alarm"
    return f" ({flow.claimed:,} after the {flow.reported:,} of {when(calendar, flow.period)})"


def readers_line(figure: CentralLoss) -> Text:
    """What readers of all results so far learn about one device."""
    if figure.epsilon is None:
        return Text(f"Readers of all results: no figure. {figure.why}.")
    from protocols.planning import factor_of  # takes time, and few surveys have a figure

    return Text(
        f"Readers of all results so far ({counted(figure.periods, 'period')}): the odds between two values of a device "
        f"that never change move by a factor of at most {factor_of(figure.epsilon)}, but for a chance of "
        f"{figure.delta:g}, if {figure.crowd:,} honest devices or more answered each question in a period."
    )


def robust_of(scheme: Scheme, window: WindowReport, forged: float) -> dict[str, dict[str, Floats]]:
    """Of each attribute of a window: normalised shares, and bounds if at most this share of its reports is forged."""
    if not 0 <= forged < 0.5:
        raise SettingsError(f"--robust {forged:g} is not a share of forged reports", "use a share below 0.5, as 0.05")
    found = {}
    for attribute in window.attributes:
        question = scheme.question(attribute.name)
        channel = question.channel
        if attribute.values is not None and not isinstance(channel, PlanarChannel):  # places: not sums over reports
            share = attribute.values.share
            found[attribute.name] = robust(share.value, share.low, share.high, channel, forged)
    return found


def robust_json(forged: float, bounds: Mapping[str, Mapping[str, Floats]]) -> dict[str, Any]:
    rounded = {name: {c: np.round(column, 6).tolist() for c, column in one.items()} for name, one in bounds.items()}
    return {"robust": {"forged": forged, "attributes": rounded}}


def robust_table(
    report: MobilityReport, window: WindowReport, forged: float, bounds: Mapping[str, Mapping[str, Floats]]
) -> RenderableType:
    """Beside the unbiased shares: the normalised ones, and what each share can be if so many reports are forged."""
    tables: list[RenderableType] = [Text(f"\nShares, if up to {forged:.1%} of the reports are forged", style="italic")]
    for name, one in bounds.items():
        values = window.attribute(name).values
        assert values is not None
        table = console.table("", "unbiased", "normalised", "at least", "at most", title=name, title_style="bold")
        for place in np.argsort(-values.share.value, kind="stable")[:MOST_VALUES]:
            numbers = (values.share.value, *one.values())
            table.add_row(Text(report.asked(name).values[place]), *(f"{column[place]:.1%}" for column in numbers))
        tables.append(table)
    return Group(*tables)
