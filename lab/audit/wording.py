"""What the figures of an audit mean (wording.json), and how they are written: for the terminal and for the page."""

import json
from collections.abc import Iterable
from importlib import resources

from lab.audit.report import Attack, Figure, Unit
from protocols.errors import counted

EXPLAINED: dict[Attack, dict[str, str]] = json.loads((resources.files(__package__) / "wording.json").read_text("utf-8"))
"""Of each attack: a heading, a paragraph for readers, and the sentence about its worst figure."""
UNITS: dict[Attack, Unit] = {"epsilon": "nats", "forge": "share", "place": "metres"}  # of the others: chances


def worst(attack: Attack, figures: Iterable[Figure]) -> str:
    """The worst figure of an attack in words, beside luck; of losses, what comes nearest to its promise."""

    def badness(figure: Figure) -> float:
        if attack == "epsilon":
            best = figure.best or 1e-9
            return -1 / best if figure.measured is None else figure.measured / best
        above = (figure.value or 0.0) - (figure.luck or 0.0)
        return -above if attack == "place" else above

    unit = UNITS.get(attack, "chance")
    known = [f for f in figures if f.attack == attack and f.unit == unit and f.value is not None]
    known = [f for f in known if (f.limited or attack == "place") and (f.exact or attack != "epsilon")]
    if not known:
        return ""
    figure = max(known, key=badness)
    proven = f"measured, it is at least {shown(figure, figure.measured)}"
    said = EXPLAINED[attack]["worst"].format(
        target=figure.target.replace("_", " ").replace("*", " by "),
        value=shown(figure, figure.value),
        best=shown(figure, figure.best),
        luck=shown(figure, figure.luck),
        knows=figure.knows,
        known="measured" if figure.value == figure.measured else "computed",
        proven="computed; not measured" if figure.measured is None else proven,
        seen="all reports" if figure.reports is None else counted(figure.reports, "report"),
    )
    return said[:1].upper() + said[1:]


def shown(figure: Figure, value: float | None) -> str:
    """A figure in its unit."""
    if value is None:
        return ""
    if figure.unit == "chance":
        return f"{100 * value:.2f} %" if value >= 1e-3 or value == 0 else f"{100 * value:.1e} %"
    if figure.unit == "share":
        return f"{100 * value:+.2f} points"
    if figure.unit == "metres":
        return f"{value:,.0f} m"
    return f"{value:.3f}" + (" bits" if figure.unit == "bits" else "")


def interval(figure: Figure) -> str:
    """The interval of a measured figure."""
    if figure.low is None:
        return ""
    if figure.high is None:
        return f"at least {shown(figure, figure.low)}"
    return f"{shown(figure, figure.low)} to {shown(figure, figure.high)}"
