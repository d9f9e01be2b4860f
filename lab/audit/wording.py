"""What the figures of an audit mean, and how they are written: for the terminal and for the page."""

from __future__ import annotations

from lab.audit.report import Attack, AuditReport, Figure
from protocols.errors import counted

EXPLAINED: dict[Attack, tuple[str, str]] = {
    "guess": (
        "Guessing a value",
        "Somebody sees one or more reports of a device and guesses its value. Luck is the chance to be right without "
        "seeing anything. The histogram column is the chance of somebody who always names the commonest value: an "
        "attack that is not better than this learns nothing about a person.",
    ),
    "place": (
        "Averaging places: root mean square distance from the place",
        "Somebody links the reports of a device that stays at one place, and takes their mean. The figure is the root "
        "mean square distance between that mean and the place, so the smaller it is, the better for the attacker. "
        "Luck is that of somebody who names the middle of the grid. Without a memo the distance goes to 0; with one "
        "it never falls below that of one memo. Places are not guessed cell by cell: next to the right one is near.",
    ),
    "which": (
        "Finding the true attribute among fakes",
        "Devices answer one attribute truly and invent the others. Somebody guesses which one is true.",
    ),
    "link": (
        "Recognising a device by its answers",
        "Reports carry no identifier. Somebody compares the answers of two periods and guesses which earlier report "
        "came from the same device. Bits say how much two reports of a device have in common; a crowd of n devices "
        "hides log2(n) bits.",
    ),
    "reidentify": (
        "Finding people in another table",
        "Somebody has a table of people with the same attributes, sees a person's answers to several surveys, and "
        "looks for that person's row. The best possible figure is that of somebody who knows the true values.",
    ),
    "epsilon": (
        "Loss: ln of the largest likelihood ratio",
        "The loss is the logarithm of how much likelier a report is under one value than under another. The best "
        "column is what the survey promises. The attack column is a loss that the devices were proven to have; it must "
        "not be above the promise.",
    ),
    "forge": (
        "Forging: how far an estimate moves",
        "Somebody sends forged reports to move a published share. Figures are for one forged report in a hundred.",
    ),
}


SAID: dict[Attack, str] = {
    "guess": "The value of {target} is guessed right with {value}",
    "place": "The place of {target} is found to within {value}",
    "which": "The true attribute is found with {value}",
    "link": "A device is recognised with {value}",
    "reidentify": "A person is found in another table with {value}",
    "epsilon": "The loss of {target} is {value}",
    "forge": "Forged reports ({target}) move a share by {value}",
}


def headline(report: AuditReport) -> list[str]:
    """The worst figure of each attack in words, beside luck."""
    found = []
    for attack, said in SAID.items():
        known = [f for f in report.figures if f.attack == attack and f.value is not None and f.unit != "bits"]
        if known:
            worst = (min if attack == "place" else max)(known, key=lambda f: (f.value or 0) - (f.luck or 0))
            seen = "all reports" if worst.reports is None else counted(worst.reports, "report")
            luck = f"; luck: {shown(worst, worst.luck)}" if worst.luck else ""
            found.append(f"{said.format(target=worst.target, value=shown(worst, worst.value))}, {seen}{luck}.")
    return found


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
