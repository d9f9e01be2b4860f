"""What is released of a period whose numbers are exact.

With `publish_from: 0` everything is released as it is. Otherwise a question's table is released if it has at least so
many reports, all gaps together, when the period is closed. No report is in two tables of a question, so no sum or
difference of tables is one of fewer reports. Who came and who stayed away is not protected. Where devices send their
memo, tables of two periods could still differ by the answer of one device: of such surveys no answers are released.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

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

    def rounded(self, threshold: int) -> "NotCounted":
        """What may be published of it: each number rounded down to a multiple of the threshold."""
        late = {period: rounded(rows, threshold) for period, rows in self.late.items()}
        return NotCounted(rounded(self.refused, threshold), {period: rows for period, rows in late.items() if rows})


def rounded(reports: int, threshold: int) -> int:
    """A number of reports, rounded down to a multiple of the threshold.

    >>> rounded(119, 50), rounded(49, 50), rounded(49, 0)
    (100, 0, 49)
    """
    return reports - reports % threshold if threshold else reports


def at_most(reports: int, threshold: int) -> int:
    """An upper bound of a number of reports, rounded up to a multiple of the threshold.

    >>> at_most(101, 50), at_most(1, 50), at_most(49, 0)
    (150, 50, 49)
    """
    return reports + -reports % threshold if threshold else reports


def reduced(counts: Counts, scheme: Scheme) -> Counts:
    """The counts of a period that are released: of some questions, none if there are too few reports."""
    least = scheme.survey.threshold
    if least == 0:
        return counts
    if scheme.survey.hides_answers:
        return {}
    return {name: together(found) for name, found in counts.items() if found.total >= least}


def together(found: Statistics) -> Statistics:
    """The counts of all gaps or flags together, in one row, which stands for gap 0."""
    gaps = np.zeros(1, dtype=np.uint16)
    return Statistics(gaps, np.array([found.total]), found.supports[None], found.widths)


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


def open_reports(counts: Counts, scheme: Scheme) -> int:
    """How many reports of an open period may be published: rounded down to a multiple of the threshold."""
    return rounded(sum(counts[kind].total for kind in scheme.kinds), scheme.survey.threshold)
