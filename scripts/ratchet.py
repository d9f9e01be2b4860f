"""The ratchet: how dense a room may be is in `scripts/size.json`, and only falls."""

import json
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import NamedTuple

from scripts.density import Density, worst

Limits = dict[str, dict[str, float]]
"""By room and figure."""
Rooms = dict[str, Density]

ROOMS = "rooms"
"""Their sum."""
ALL = "all"
"""The sum of the rooms and the lab."""
JAVASCRIPT = "JavaScript"
"""What the names of rooms of JavaScript begin with."""


class Figure(NamedTuple):
    """A figure that may only fall."""

    key: str
    title: str
    """The head of its column."""
    words: str
    """What it is, in sentences."""
    step: float
    """Limits are multiples of it. Of a figure that has no step, the limit is the figure."""
    amount: str
    """What is counted: a field of `Density`."""
    spots: str
    """The field that has the worst places."""
    per: str = ""
    """The field that the amount is divided by, if by any."""
    times: int = 1
    advice: str = ""

    def value(self, density: Density) -> float:
        """The figure of a room.

        >>> from scripts.density import Spot
        >>> CONDITIONALS.value(Density(code=2_000, conditionals=[Spot(9, "protocols/a.py:7", "")] * 3))
        1.5
        """
        counted = getattr(density, self.amount)
        amount = len(counted) if isinstance(counted, list) else counted
        if not self.per:
            return float(amount)
        whole: int = getattr(density, self.per)
        return float(self.times * amount / max(whole, 1))

    def limit(self, density: Density) -> float:
        """The smallest multiple of the step that leaves at least half a step.

        Rounded to the nearest multiple, a figure just below a border would fail with the next line of code. With
        half a step, an edit of a few lines never fails, and more than a step and a half is never given away.

        >>> [TOKENS.limit(Density(code=1_000, tokens=tokens)) for tokens in (10_310, 10_350, 10_351)]
        [10.4, 10.4, 10.5]
        >>> EXCEPTIONS.limit(Density())
        0
        """
        if not self.step:
            return round(self.value(density))
        steps = ceil(round(self.value(density) / self.step + 0.5, 6))
        return round(steps * self.step, 1)


# A step is about what one construct changes in the smallest room, of a thousand lines and a hundred functions.
TOKENS = Figure(
    key="tokens_per_line",
    title="tok/line",
    words="tokens a code line",
    step=0.1,
    amount="tokens",
    spots="fullest",
    per="code",
    advice="Do one thing a line, and name what comes between.",
)
LONG = Figure(
    key="long_functions_percent",
    title=">150 %",
    words="per cent of functions with more than 150 tokens",
    step=0.5,
    amount="long_functions",
    spots="long_functions",
    per="functions",
    times=100,
    advice="Split the function where a comment would say what comes next.",
)
TUPLES = Figure(
    key="tuple_assignments_per_1000_lines",
    title="tuples",
    words="assignments of several values at once, per 1,000 lines",
    step=1,
    amount="tuples",
    spots="tuples",
    per="code",
    times=1_000,
    advice="Assign each on a line of its own. A swap, or what one call returns, does not count.",
)
CONDITIONALS = Figure(
    key="conditional_expressions_per_1000_lines",
    title="if-else",
    words="conditional expressions per 1,000 lines",
    step=1,
    amount="conditionals",
    spots="conditionals",
    per="code",
    times=1_000,
    advice="Write an `if`, or a function that returns early.",
)
NESTED = Figure(
    key="nested_comprehensions_per_1000_lines",
    title="nested",
    words="nested comprehensions per 1,000 lines",
    step=0.5,
    amount="nested",
    spots="nested",
    per="code",
    times=1_000,
    advice="Write a loop, or name the inner comprehension.",
)
WIDE = Figure(
    key="wide_lines_percent",
    title=">100 %",
    words="per cent of lines above 100 columns",
    step=0.5,
    amount="wide",
    spots="wide",
    per="code",
    times=100,
    advice="Break the line, or name a part of it.",
)
EXCEPTIONS = Figure(
    key="exceptions",
    title="dense:",
    words="lines that end in `dense: why`",
    step=0,
    amount="exceptions",
    spots="exceptions",
    advice="Take away another exception of this room.",
)
NOISE = Figure(
    key="isinstance_of_noise",
    title="noise",
    words="`isinstance` of kinds of noise outside protocols/mechanisms",
    step=0,
    amount="noise",
    spots="noise",
    advice="Give the kinds a method, and call it.",
)
FIGURES = (TOKENS, LONG, TUPLES, CONDITIONALS, NESTED, WIDE, EXCEPTIONS)
LINES = (TOKENS, WIDE, EXCEPTIONS)


def figures_of(room: str) -> tuple[Figure, ...]:
    """What is limited in a room. Sums of rooms have no limits but one: code that moves would change them."""
    if room == ALL:
        return (NOISE,)
    if room == ROOMS:
        return ()
    return LINES if room.startswith(JAVASCRIPT) else FIGURES


def new_limits(rooms: Rooms, limits: Limits) -> Limits:
    """Lower the limits to what the rooms are now. None is raised; a new room gets its own."""
    lowered: Limits = {}
    for room, density in rooms.items():
        known = limits.get(room, {})
        found = {figure.key: figure.limit(density) for figure in figures_of(room)}
        if found:
            lowered[room] = {key: min(limit, known.get(key, limit)) for key, limit in found.items()}
    return lowered


def complaints(rooms: Rooms, limits: Limits) -> Iterator[str]:
    """What is above its limit, or has none."""
    for room, density in rooms.items():
        for figure in figures_of(room):
            limit = limits.get(room, {}).get(figure.key)
            if limit is None:
                yield f"{room}: no limit for {figure.words}. `make size WRITE=1` writes it."
            elif figure.value(density) > limit:
                yield complaint(room, figure, density, limit)


def complaint(room: str, figure: Figure, density: Density, limit: float) -> str:
    """Say which figure of which room got worse, where it is worst, and what to do."""
    value = figure.value(density)
    was = f"{room}: {figure.words}: at most {limit:g} before, {value:.4g} now."
    places = [f"    {spot.where}  {spot.what}" for spot in worst(getattr(density, figure.spots))]
    return "\n".join([was, "  The worst:", *places, f"  {figure.advice}"])


def read(file: Path) -> Limits:
    """Read the limits; there are none if there is no file."""
    if not file.exists():
        return {}
    limits: Limits = json.loads(file.read_text())
    return limits


def write(file: Path, limits: Limits) -> None:
    """Write the limits, a figure a line: two branches that lower different ones can be merged."""
    file.write_text(json.dumps(limits, indent=1) + "\n")
