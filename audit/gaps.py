"""Through gaps: how many reports may be the one before (docs/audit.md, section 7).

A report of period t with gap g below the horizon follows one of the reports of period t - g, each of them alike. So
what narrows the crowd is not a rare gap but a small period: of the same attribute under smp, and of the same hash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from audit.report import Figure, Finding
from protocols.arrays import Whole
from protocols.privacy import trait_values
from protocols.scheme import Scheme

FEW = 100  # candidates below which a crowd is small
WORST = 0.05  # the share of reports that have the fewest candidates


class Followed:
    """How many reports each attribute had in each period, and which gaps they had."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._reports: Counter[tuple[str, int]] = Counter()
        self._gaps: Counter[tuple[str, int, int]] = Counter()

    def count(self, name: str, period: int, gaps: Whole, counts: Whole) -> None:
        """Reports of one of the `names` in one period, by gap."""
        self._reports[name, period] += int(counts.sum())
        for gap, count in zip(gaps.tolist(), counts.tolist(), strict=True):
            if gap < self._scheme.survey.horizon and count > 0:
                self._gaps[name, period, gap] += count

    @property
    def names(self) -> list[str]:
        """What has a crowd of its own: under smp every attribute, unless reports may answer nothing."""
        questions = self._scheme.questions
        return [question.name for question in (questions if self.divided else questions[:1])]

    @property
    def divided(self) -> bool:
        """Whether every attribute has a crowd of its own."""
        return self._scheme.discloses and not self._scheme.takes_turns

    def _candidates(self, name: str) -> list[tuple[int, int]]:
        """Pairs of candidates and reports that have so many, ascending."""
        traits = trait_values(self._scheme.question(name))
        found: Counter[int] = Counter()
        for (attribute, period, gap), count in self._gaps.items():
            if attribute == name:
                found[max(1, self._reports[name, period - gap] // traits)] += count
        return sorted(found.items())

    def figures(self) -> Iterator[Figure]:
        """The chance to name the report before, of the reports that are worst off."""
        for name in self.names:
            pairs = self._candidates(name)
            if pairs:
                reached = np.cumsum([count for _, count in pairs])
                candidates = pairs[int(np.searchsorted(reached, WORST * reached[-1]))][0]
                yield Figure(
                    attack="link", target=name if self.divided else "a whole report",
                    knows=f"the gap, and how many reported before (worst {WORST:.0%} of the reports)", reports=2,
                    unit="chance", luck=1 / candidates, histogram=1 / candidates, best=1 / candidates,
                )  # fmt: skip

    def findings(self) -> Iterator[Finding]:
        """Periods in which too few reported."""
        for name in self.names:
            pairs = self._candidates(name)
            if pairs and pairs[0][0] < FEW:
                few = sum(count for candidates, count in pairs if candidates < FEW)
                text = (
                    f"{name}: {few:,} of {sum(count for _, count in pairs):,} reports with a gap below the "
                    f"horizon follow one of fewer than {FEW} reports (the fewest: {pairs[0][0]})."
                )
                yield Finding(code="small-crowd", text=text)
