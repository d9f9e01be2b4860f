"""A mobility report on a terminal of 80 columns: visitors of each period, then the answers of one window."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analytics.mobility import AskedAttribute, AttributeReport, Change, MobilityReport, Quantity, WindowReport

MOST_VALUES = 12
BAR = 16
LABEL = 28


def visitors_table(report: MobilityReport) -> Table:
    """One row for each period: visitors, new and returning ones, and the unique visitors since the beginning."""
    periods = [window for window in report.windows if window.kind == "period"]
    since = {window.last: window for window in report.windows if periods and window.first == periods[0].first}
    known = any(window.truth is not None for window in periods)
    normal = any(window.baseline is not None for window in periods)
    table = Table(title="Visitors", title_justify="left", box=None, pad_edge=False)
    extra = (*(["truth"] if known else []), *(["vs baseline"] if normal else []))
    for column in ("period", "visitors", *extra, "new", "returning", "unique so far"):
        table.add_column(column, justify="left" if column == "period" else "right")
    if any(window.presence_lost for window in report.windows):
        table.caption = "some windows may count devices twice: presence records were lost"
    for window in periods:
        cells = [_when(window), _count(window.visitors)]
        if known:
            cells.append(_number(window.truth))
        if normal:
            cells.append(_percent(window.baseline))
        so_far = since.get(window.last)
        cells += [_count(window.new), _count(window.returning), _count(so_far.visitors) if so_far else ""]
        table.add_row(*cells)
    return table


def answers_table(report: MobilityReport, window: WindowReport) -> RenderableType:
    """The answers of one window: estimates, half the width of their intervals, and the truth where it is known."""
    tables = [_answers(report.asked(attribute.name), attribute, window.visitors) for attribute in window.attributes]
    visitors = "" if window.visitors is None else f": {_count(window.visitors)} visitors"
    return Group(Text(f"\nAnswers, {_when(window)}{visitors}", style="italic"), *tables)


def _answers(asked: AskedAttribute, attribute: AttributeReport, visitors: Quantity | None) -> RenderableType:
    if attribute.suppressed:
        return Text(f"  {attribute.name}: suppressed, too few answers", style="dim")
    head = Text(f"\n{attribute.name}", style="bold")
    head.append(f"  {asked.mechanism}, {attribute.n or 0:,} answers", style="not bold dim")
    table = Table(box=None, pad_edge=False)
    if attribute.values is None or visitors is None:
        return Group(head, table)
    people, truth = attribute.values.people(visitors), attribute.values.truth
    for title in ("", "people", "± 95 %", *([] if truth is None else ["truth"])):
        table.add_column(title, justify="right" if title else "left", min_width=None if title else LABEL)
    table.add_column("")
    listed = np.argsort(-people.value, kind="stable")
    most = people.value[listed[0]]
    for place in listed[:MOST_VALUES]:
        one = people.at(place)
        row: list[RenderableType] = [Text(asked.values[place]), _count(one), _half_width(one)]
        if truth is not None:
            row.append(_number(truth[place]))
        table.add_row(*row, "█" * round(BAR * max(0, one.value or 0) / most if most > 0 else 0))
    if len(listed) > MOST_VALUES:
        table.add_row(f"and {len(listed) - MOST_VALUES:,} more", style="dim")
    return Group(head, table)


def _when(window: WindowReport) -> str:
    """When its first period begins; for a window of several periods, also when its last one begins."""
    whole_days = (window.end - window.begin) % timedelta(days=1) == timedelta(0) and window.begin.hour == 0
    style = "%a %Y-%m-%d" if whole_days else "%Y-%m-%d %H:%M"
    if window.first == window.last:
        return window.begin.strftime(style)
    last = window.begin + (window.end - window.begin) / (window.last - window.first + 1) * (window.last - window.first)
    return f"{window.begin.strftime(style)} to {last.strftime(style)}"


def _count(quantity: Quantity | None) -> str:
    return "–" if quantity is None or quantity.value is None else f"{round(quantity.value):,}"


def _percent(change: Change | None) -> str:
    return "–" if change is None or change.percent.value is None else f"{change.percent.value:+.1f} %"


def _half_width(quantity: Quantity) -> str:
    if quantity.low is None or quantity.high is None:
        return ""
    return f"{(quantity.high - quantity.low) / 2:,.0f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
