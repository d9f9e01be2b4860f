"""What the figures of an audit mean, and how they are written: for the terminal and for the page."""

from collections.abc import Iterable

from lab.audit.report import Attack, Figure, Unit
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
    "read": (
        "Reading published tables",
        "Somebody sees no report, only counts of whole crowds, and knows everything about everybody else in them. It "
        "guesses which of two values a device has, or which crowd a person is in; of areas, who was where when. The "
        "best column is the same attack where noise hides nothing.",
    ),
    "forge": (
        "Forging: how far an estimate moves",
        "Somebody sends forged reports to move a published share. Figures are for one forged report in a hundred.",
    ),
}


UNITS: dict[Attack, Unit] = {"epsilon": "nats", "forge": "share", "place": "metres"}  # of the others: chances
SAID: dict[Attack, str] = {
    "guess": "{target} is guessed right in {value} of all cases ({known}; {seen}); by luck, in {luck}.",
    "place": "A place is known to {value} on average ({known}, from {seen}); without a report, to {luck}.",
    "which": "The true answer is guessed right in {value} of all cases ({known}; {seen}); by luck, in {luck}.",
    "link": "{target}: a device is recognised in {value} of all cases ({known}; {seen}; {knows}); by luck: {luck}.",
    "reidentify": "A person is among {target} in {value} of all cases ({known}; {seen}); by luck, in {luck}.",
    "epsilon": "The loss of {target} from {seen} is at most {best} ({proven}).",
    "read": "{target}: readers of tables are right in {value} of all cases ({known}; {knows}); by luck: {luck}.",
    "forge": "{target}: one forged report in a hundred moves a share by up to {value} ({known}).",
}


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
    said = SAID[attack].format(
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
