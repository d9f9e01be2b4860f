"""Event files before and after a replay, on a terminal and as JSON."""

from collections.abc import Mapping

from rich.table import Table

from hearsay.terminal import console
from hearsay.terminal.dates import when
from producers.edge import EdgeState
from producers.events import Fault, Inspection, Located
from producers.replay import Summary
from protocols.survey import Calendar

Faults = Mapping[Fault, Located]
MOST_NAMED = 3


def show_inspection(found: Inspection, calendar: Calendar, as_json: bool) -> None:
    """Show what would be reported, what would be lost, and the options that help."""
    if as_json:
        fault, share = found.worst
        worst = {"fault": fault.name.lower(), "share": share}
        console.print_json({**vars(found), "faults": _faults_json(found.faults), "worst": worst})
        return
    table = Table("", "count", "details", box=None, pad_edge=False)
    table.add_row("files", f"{found.files:,}")
    table.add_row("rows", f"{found.rows:,}")
    table.add_row("periods", f"{len(found.people):,}", _spanned(calendar, found.people) if found.people else "")
    if found.people:
        counts = sorted(found.people.values())
        middle = f"{counts[len(counts) // 2]:,}"
        table.add_row("people per period", middle, f"the median; from {counts[0]:,} to {counts[-1]:,}")
        table.add_row("suppressed periods", f"{found.suppressed:,}")
    _add_faults(table, found.told_apart, found.faults)
    console.out.print()
    for column, unknown in found.unknown.items():
        listed = ", ".join(f"{value!r} ({count:,})" for value, count in unknown.items())
        console.out.print(f"- column {column}, the most frequent values that are not listed: {listed}", markup=False)
    for sentence in found.advice or ["Nothing is wrong with these files."]:
        console.out.print(f"- {sentence}", markup=False)


def _spanned(calendar: Calendar, people: Mapping[int, int]) -> str:
    """From when to when the periods are, and those between them without anybody."""
    first, last = min(people), max(people)
    empty = [period for period in range(first, last + 1) if period not in people]
    named = ", ".join(when(calendar, period) for period in empty[:MOST_NAMED])
    more = ", ..." if len(empty) > MOST_NAMED else ""
    lacking = f"; of {last - first + 1:,}, nobody in {named}{more}" if empty else ""
    return f"{when(calendar, first)} to {when(calendar, last)}{lacking}"


def _add_faults(table: Table, told_apart: int, faults: Faults) -> None:
    """Add what was found about rows to a table, and show it."""
    if told_apart:
        table.add_row("repeated times", f"{told_apart:,}", "local times that the clock shows twice: one was chosen")
    for fault, found in faults.items():
        several = len({path for path, _ in found.places}) > 1
        lines = [f"{path.name} {line}" if several else str(line) for path, line in found.places]
        more = ", ..." if found.count > len(lines) else ""
        table.add_row(fault.value, f"{found.count:,}", f"lines {', '.join(lines)}{more}" if lines else "")
    console.out.print(table)


def _faults_json(faults: Faults) -> dict[str, object]:
    return {
        fault.name.lower(): {
            "count": found.count,
            "first": [{"file": path.name, "line": line} for path, line in found.places],
        }
        for fault, found in faults.items()
    }


def show_edge(state: EdgeState, as_json: bool) -> None:
    """Show what an edge has read and sent so far."""
    if as_json:
        events_held = {period: events for period, (_, events) in state.held.items()}
        faults = {name.lower(): count for name, count in state.faults.items()}
        counted = {"rows": state.rows, "told_apart": state.told_apart, "faults": faults, "late": state.late}
        console.print_json({**vars(state.totals), **counted, "open": events_held})
        return
    table = Table("", "count", "details", box=None, pad_edge=False)
    held = sum(events for _, events in state.held.values())
    table.add_row("rows", f"{state.rows:,}")
    table.add_row("periods", f"{state.totals.periods:,}")
    table.add_row("reports", f"{state.totals.reports:,}")
    table.add_row("open periods", f"{len(state.held):,}", f"{held:,} events, sealed")
    for name, count in {**state.faults, Fault.DUPLICATE.name: state.totals.duplicates}.items():
        table.add_row(Fault[name].value, f"{count:,}")
    console.out.print(table)


def show_summary(summary: Summary, as_json: bool) -> None:
    """Show what was in the file and how many reports were made of it."""
    if as_json:
        console.print_json({**vars(summary), "faults": _faults_json(summary.faults)})
        return
    table = Table("", "count", "details", box=None, pad_edge=False)
    about = "" if summary.people_exact else "about "
    again = f"{summary.repeats:,} of them had been reported before" if summary.repeats else ""
    table.add_row("rows", f"{summary.rows:,}")
    table.add_row("people", f"{about}{summary.people:,}")
    table.add_row("periods", f"{summary.periods:,}")
    table.add_row("reports", f"{summary.reports:,}", again)
    if summary.ineligible:
        reason = "their period was closed, or they had reported a later one"
        table.add_row("not eligible", f"{summary.ineligible:,}", reason)
    if summary.unlisted:
        reason = "a person had no listed value in the period: `other`, or a drawn value, stands for it"
        table.add_row("unlisted", f"{summary.unlisted:,}", reason)
    _add_faults(table, summary.told_apart, summary.faults)
