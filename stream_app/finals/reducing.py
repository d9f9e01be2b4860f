"""What is released of a period under the survey's `minimum`: decided once, from numbers of reports alone.

Gaps are joined to neighbouring ranges, which all questions share: from gap 1 on, a range ends as soon as every released
question has at least `minimum` reports in it; what is left joins the last range. Questions with fewer reports are left
out. While those left out have together 1 to minimum - 1 reports, the smallest released one is left out, too.

Nobody who knows the rule and everything that is released can tell of any set of cells (period, question, gap) that it
has 1 to minimum - 1 reports: every cell that is released has at least `minimum`, and so has what is left out, if it is
not empty. How many of them support a value is protected by the noise of their answers, not by this rule.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from protocols.arrays import Whole
from protocols.scheme import Scheme
from stream_app.counting.counters import Counts, Statistics
from stream_app.counting.partials import Part


@dataclass(frozen=True)
class NotCounted:
    """Rows that are not among the counts of a period: its own refused ones, and late ones that came before its end."""

    refused: int = 0
    late: Mapping[int, int] = field(default_factory=dict)  # by period

    @staticmethod
    def of(parts: Sequence[Part]) -> "NotCounted":
        """The sum over partitions."""
        late = Counter[int]()
        for part in parts:
            late.update(part.late)
        return NotCounted(sum(part.refused for part in parts), dict(sorted(late.items())))

    def rounded(self, minimum: int) -> "NotCounted":
        """What may be published of it: each number rounded down to a multiple of the minimum."""
        late = {period: rounded(rows, minimum) for period, rows in self.late.items()}
        return NotCounted(rounded(self.refused, minimum), {period: rows for period, rows in late.items() if rows})


def rounded(reports: int, minimum: int) -> int:
    """A number of reports, rounded down to a multiple of the minimum.

    >>> rounded(119, 50), rounded(49, 50), rounded(49, 0)
    (100, 0, 49)
    """
    return reports - reports % minimum if minimum else reports


def at_most(reports: int, minimum: int) -> int:
    """An upper bound of a number of reports, rounded up to a multiple of the minimum.

    >>> at_most(101, 50), at_most(1, 50), at_most(49, 0)
    (150, 50, 49)
    """
    return reports + -reports % minimum if minimum else reports


def reduced(counts: Counts, scheme: Scheme) -> Counts:
    """The counts of a period that are released: of some questions, none if there are too few reports.

    With `minimum: 0` everything is released as it is. Otherwise a row of counts belongs to the gaps from its own up to
    the one before the next row's; the last row's go up to the horizon.
    """
    minimum = scheme.survey.minimum
    if minimum <= 0:
        return counts
    kinds = released_kinds({kind: counts[kind].total for kind in scheme.kinds}, minimum)
    if not kinds:
        return {}
    by_gaps = scheme.survey.visitors is None  # flags are never joined to ranges: all of them are one
    firsts = shared_ranges([counts[kind] for kind in kinds], minimum) if by_gaps else np.zeros(1, dtype=np.int64)
    # Where a report answers all attributes, they are counted together: by the kind of the first one.
    kept = [name for name in counts if (name if name in scheme.kinds else scheme.kinds[0]) in kinds]
    return {name: _joined(counts[name], firsts) for name in kept}


def totals(counts: Counts) -> Counts:
    """For surveys with `central`: supports of all gaps together, in the last row, and no widths (PROTOCOLS 11).

    By gap, answers of few devices would be told from those of the others; by width, the bits of one answer.
    """
    found = {}
    for name, statistics in counts.items():
        N = np.zeros_like(statistics.N)
        N[-1:] = statistics.supports
        found[name] = Statistics(statistics.gaps, statistics.n, N)
    return found


def released_kinds(totals: dict[str, int], minimum: int) -> list[str]:
    """The kinds of reports that are released.

    >>> released_kinds({"colour": 80, "page": 70, "size": 3}, minimum=50)
    ['colour']
    >>> released_kinds({"colour": 80, "page": 20, "size": 40}, minimum=50)
    ['colour']
    """
    released = [kind for kind, total in totals.items() if total >= minimum]
    while released and 0 < sum(total for kind, total in totals.items() if kind not in released) < minimum:
        released.remove(min(released, key=lambda kind: totals[kind]))
    return released


def open_reports(counts: Counts, scheme: Scheme) -> int:
    """How many reports of an open period may be published: rounded down to a multiple of the minimum.

    0 while a kind of reports has fewer than the minimum. That kind may be left out of the final, and then the number of
    all reports would tell how many there are of what is left out.
    """
    totals, minimum = [counts[kind].total for kind in scheme.kinds], scheme.survey.minimum
    return rounded(sum(totals), minimum) if min(totals) >= minimum else 0


def shared_ranges(kinds: Sequence[Statistics], minimum: int) -> Whole:
    """The first gap of each range, ascending."""
    gaps = np.unique(np.concatenate([kind.gaps for kind in kinds])).astype(np.int64)
    n = np.zeros((len(gaps), len(kinds)), dtype=np.int64)
    for column, kind in enumerate(kinds):
        n[np.searchsorted(gaps, kind.gaps), column] = kind.n
    firsts, gathered = [1], np.zeros(len(kinds), dtype=np.int64)
    for gap, reports in zip(gaps.tolist(), n, strict=True):
        gathered = gathered + reports
        if (gathered >= minimum).all():
            firsts.append(gap + 1)
            gathered = np.zeros_like(gathered)
    return np.array(firsts[:-1], dtype=np.int64)  # what comes after the last end joins the range before it


def _joined(statistics: Statistics, firsts: Whole) -> Statistics:
    """The counts by range."""
    rows = np.searchsorted(firsts, statistics.gaps, side="right") - 1
    n = np.zeros(len(firsts), dtype=np.int64)
    N = np.zeros((len(firsts), statistics.N.shape[1]), dtype=np.int64)
    np.add.at(n, rows, statistics.n)
    np.add.at(N, rows, statistics.N)
    return Statistics(firsts.astype(np.uint16), n, N, statistics.widths)
