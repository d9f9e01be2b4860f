"""Records of mechanisms: what is known about each before it is built, and what everything else derives from.

The names a survey may use, the reference table, what `auto` may choose, the checks of parameters and sizes, cautions
and the methods of an evaluation all read these records. They are listed in `catalogue`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from protocols.mechanisms.encodings import FakeKind
from protocols.mechanisms.mechanism import Builder

Use = Literal["one-shot", "memo only", "two rounds", "rs+fd", "rs+rfd"]
"""How a survey uses a mechanism: by its solution under fake data, otherwise by its budgets."""
USES: tuple[Use, ...] = get_args(Use)
MAX_VALUES = 1 << 16
"""How many values a mechanism takes, unless its record says another number."""


AUTO = "auto"
CHOOSERS = {
    AUTO: "of the direct and the unary mechanism that fit, the one with the smaller error among those that link no "
    "reports in a crowd of `devices` and, under rs+rfd, do not show which attribute is true; above 65,536 values olh",
    "adp": "auto by its name in the literature; under rs+fd it may choose oue-z",
    "allomfree": "auto by its name in the literature",
}
"""Names that a survey may write instead of a mechanism: of those it may choose, the smallest variance wins."""

EVERY_CHOOSER: Mapping[str, tuple[Use, ...]] = dict.fromkeys(CHOOSERS, USES)
"""Every chooser may choose the mechanism, wherever it fits."""


@dataclass(frozen=True)
class Fakes:
    """How a mechanism answers where one attribute is true and the others are fake (PROTOCOLS 4).

    `one_round` and `two_rounds` name the mechanisms that randomise the truth. A fake encodes a value drawn from the
    prior (evenly under rs+fd), or, of kind `zero`, no value at all, which rs+rfd does not allow.
    """

    one_round: str
    two_rounds: str
    kind: FakeKind


@dataclass(frozen=True, eq=False)
class MechanismRecord:
    """One mechanism as surveys name it."""

    name: str
    summary: str
    """One line for the reference table."""
    one_round: Builder | None = None
    """Builds it for one round: fresh noise for every report, or a memo that is sent as it is."""
    two_rounds: Builder | None = None
    """Builds it for a memo and fresh noise on it."""
    fakes: Fakes | None = None
    """How it answers under rs+fd and rs+rfd; None: not there."""
    lifelong: bool = False
    """Whether a device keeps something for life that its reports show. Such a mechanism needs a memo."""
    without_memos: bool = False
    """Whether one that is lifelong can be used without memos, too."""
    fresh: bool = False
    """Whether every report shows something new that a memo would keep for life: only for surveys without memos."""
    needs_order: bool = False
    needs_grid: bool = False
    """Whether it is for places on a grid, and for nothing else; its budgets are per cell side."""
    max_values: int = MAX_VALUES
    parameter: str = ""
    """What its parameter means; empty: it takes none."""
    published_differs: bool = False
    """Whether the literature calibrates it differently (PROTOCOLS 3 and 5)."""
    chosen_by: Mapping[str, tuple[Use, ...]] = field(default_factory=dict)
    """By name of the chooser: the uses for which it may choose this mechanism, among those that fit."""
    chosen_above: int = 0
    """Choosers choose it for attributes of more values only."""

    def fits(self, use: Use) -> bool:
        """Whether a survey can use it this way.

        >>> from protocols.mechanisms.catalogue import RECORDS
        >>> [use for use in USES if RECORDS["loloha"].fits(use)]
        ['memo only', 'two rounds']
        """
        if use == "one-shot":
            return self.one_round is not None and (not self.lifelong or self.without_memos)
        if use == "memo only":
            return self.one_round is not None and not self.fresh
        if use == "two rounds":
            return self.two_rounds is not None
        return self.fakes is not None and (use == "rs+fd" or self.fakes.kind != "zero")

    def takes(self, k: int, ordered: bool, sets: bool = False) -> bool:
        """Whether an attribute of k values can be asked with it. Of sets, an answer must be about one element."""
        return (
            (ordered or not self.needs_order) and k <= self.max_values and not (sets and (self.lifelong or self.fresh))
        )

    def may_be_chosen(self, chooser: str, use: Use, k: int = MAX_VALUES) -> bool:
        return self.fits(use) and use in self.chosen_by.get(chooser, ()) and k > self.chosen_above
