"""Through gaps: how many reports may be the one before (docs/audit.md, section 7).

A report of period t with gap g below the horizon follows one of the reports of period t - g, each of them alike. So
what narrows the crowd is not a rare gap but a small period: of the same attribute under smp, and of the same hash.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from lab.audit.report import Figure, Finding, plain
from protocols.arrays import Whole
from protocols.privacy import trait_values
from protocols.scheme import Scheme

FEW = 100  # candidates below which a crowd is small
WORST = 0.05  # the share of reports that have the fewest candidates

Reports = tuple[str, int, Whole, Whole]  # of a crowd in a period: its name, the period, gaps, and reports with each
Candidates = Mapping[str, list[tuple[int, int]]]  # by crowd: candidates, and how many reports have so many; ascending


def divided(scheme: Scheme) -> bool:
    """Whether every attribute has a crowd of its own: under smp, unless reports may answer nothing."""
    return scheme.discloses and not scheme.takes_turns


def crowds(scheme: Scheme) -> list[str]:
    """The attributes that have a crowd of their own; the first one stands for all if there is one crowd."""
    return [question.name for question in (scheme.questions if divided(scheme) else scheme.questions[:1])]


def candidates(scheme: Scheme, reports: Iterable[Reports]) -> Candidates:
    """Among how many reports the one before is, of every report with a gap below the horizon."""
    visits, there, followed = scheme.survey.visits, Counter[tuple[str, int]](), Counter[tuple[str, int, int]]()
    for name, period, gaps, counts in reports:
        there[name, period] += int(counts.sum())
        for gap, count in zip(gaps.tolist(), counts.tolist(), strict=True):
            followed[name, period, gap] += count
    found: dict[str, Counter[int]] = {}
    for (name, period, gap), count in followed.items():
        if count > 0 and (before := visits.previous(gap, period)):
            among = max(1, sum(there[name, earlier] for earlier in before) // trait_values(scheme.question(name)))
            found.setdefault(name, Counter())[among] += count
    return {name: sorted(found[name].items()) for name in crowds(scheme) if name in found}


def gap_figures(scheme: Scheme, found: Candidates) -> Iterator[Figure]:
    """The chance to name the report before, of the reports that are worst off."""
    for name, pairs in found.items():
        reached = np.cumsum([count for _, count in pairs])
        among = pairs[int(np.searchsorted(reached, WORST * reached[-1]))][0]
        target, says = name if divided(scheme) else "a whole report", scheme.survey.visits.column
        knows = f"the {says}, and how many reported before (worst {WORST:.0%} of the reports)"
        yield plain("link", target, knows, 2, "chance", 1 / among, luck=1 / among)


def gap_findings(found: Candidates) -> Iterator[Finding]:
    """Periods in which too few reported."""
    for name, pairs in found.items():
        if pairs[0][0] < FEW:
            few = sum(count for among, count in pairs if among < FEW)
            text = (
                f"{name}: {few:,} of {sum(count for _, count in pairs):,} reports that have one before "
                f"them follow one of fewer than {FEW} reports (the fewest: {pairs[0][0]})."
            )
            yield Finding(code="small-crowd", text=text)
