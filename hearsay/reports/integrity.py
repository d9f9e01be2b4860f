"""Verdicts on periods, and estimates that forged reports move less, on a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from analytics.integrity import ALPHA, MEANINGS, CheckName, Integrity, robust
from analytics.mobility import MobilityReport, WindowReport
from hearsay.terminal import console
from hearsay.terminal.dates import when
from protocols.arrays import Floats
from protocols.errors import SettingsError
from protocols.mechanisms import PlanarChannel
from protocols.scheme import Scheme
from protocols.survey import Calendar

MOST_VALUES = 12


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
    flow = verdict.flow if not name else None
    one = verdict.attribute(name)
    if check == "flow":
        flow = flow or (one.flow if one is not None else None)
        return (
            "" if flow is None else f" ({flow.claimed:,} after the {flow.reported:,} of {when(calendar, flow.period)})"
        )
    found = None if one is None else one.checks.get(check)
    return "" if found is None else f" (p = {found.p:.2g}, {found.adjusted:.2g} for all periods and checks)"


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
