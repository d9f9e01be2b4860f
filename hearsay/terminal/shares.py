"""Shares of questions on the command line: wanted errors as people write them, and the table of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from protocols.errors import SettingsError

if TYPE_CHECKING:
    from protocols.planning import SharesPlan


def parse_wanted(text: str) -> dict[str, float]:
    """Wanted standard errors, by question.

    >>> parse_wanted("age*area=0.01, age=0.005")
    {'age*area': 0.01, 'age': 0.005}
    """
    found: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = (piece.strip() for piece in part.partition("="))
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = 0.0
        if not 1e-6 <= found[name] <= 1:
            raise SettingsError(f"--wanted: {part!r} is not a wanted error", "write it like age*area=0.01,age=0.005")
    return found


def shares_table(shares: SharesPlan, devices: int) -> Table:
    """How exact single values are beside the even one, and the shares for the wanted errors."""
    title = f"Shares of questions: standard error of a value if all are alike, {devices:,} devices per period"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = ("question", "share", "even value", "error", "wanted", "proposed share", "error then")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=not place)
    for one in shares.questions:
        error = f"[red]{one.error:.4g}[/]" if one.error > one.even else f"{one.error:.4g}"
        figures = [f"{one.wanted:g}", f"{one.proposed:.3f}", f"{one.proposed_error:.4g}"]
        table.add_row(one.name, f"{one.share:.3g}", f"{one.even:.4g}", error, *figures)
    table.caption = (
        f"The proposed shares reach all wanted errors with the fewest devices: {shares.devices_needed:,} in a period. "
        "Wanted errors are those of --wanted, otherwise that of --error."
    )
    table.caption_justify = "left"
    return table
