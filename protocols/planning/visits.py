"""What gaps and flags tell about the report before, in bits: from their shares among the reports of a period.

Nobody knows how often devices will report. The figures are those of a crowd in which some come daily and others hardly
ever, all rates alike, over a year or as many periods as `MOST_PERIODS`.
"""

import numpy as np

from protocols.privacy.crowd import trait_values
from protocols.scheme import Scheme
from protocols.survey import DAY, NEVER, CalendarVisits, Survey, Visits
from protocols.survey.visits import GapVisits

RATES = 1000
MOST_PERIODS = 800
RARE = 0.01  # of the reports of a period: rarer numbers are left out of the worst case
GAPS = 31
"""The horizon that flags are compared with: the longest that a person's device takes."""


def told_bits(visits: Visits, survey: Survey) -> tuple[float, float]:
    """How many bits the number of a report tells: on average, and of the rarest number that is not very rare."""
    daily = (np.arange(RATES) + 0.5) / RATES
    often = 1 - (1 - daily) ** min(1.0, survey.period / DAY)
    periods = min(round(365 * DAY / survey.period), MOST_PERIODS)
    absent = (1 - often) ** np.arange(periods)[:, None]  # for so many periods
    never, again = (often * absent).mean(axis=1), (often**2 * absent).mean(axis=1)
    total, reports, worst = 0.0, 0.0, 0.0
    for period in range(periods):
        numbers = visits.of(np.arange(NEVER, period), period)
        counts = np.bincount(numbers, np.append(never[period], again[:period][::-1]))
        counts = counts[counts > 0]
        bits = -np.log2(counts / counts.sum())
        total, reports = total + float(counts @ bits), reports + float(counts.sum())
        worst = max(worst, float(bits[counts >= RARE * counts.sum()].max()))
    return total / reports, worst


def visit_bits(survey: Survey) -> dict[str, tuple[float, float]]:
    """The same of a survey with `visitors`, and of gaps up to `GAPS` in their place; nothing of other surveys."""
    if not isinstance(survey.visits, CalendarVisits):
        return {}
    return {"flags": told_bits(survey.visits, survey), "gaps": told_bits(GapVisits(GAPS), survey)}


def candidates(scheme: Scheme, devices: int) -> int | None:
    """Among how many reports the one before is, at least, if `devices` report in a period; None where nothing tells.

    A gap below the horizon names a period. Flags allow several, but on the second day of a week only the first.
    """
    if not scheme.survey.units and scheme.survey.horizon == 1:
        return None
    divided = scheme.questions if scheme.discloses else ()
    shares = [float(q.drawn) / trait_values(q) for q in divided] or [1 / max(map(trait_values, scheme.questions))]
    return int(devices * min(shares))
