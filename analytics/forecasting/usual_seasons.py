"""Which seasons a series has if nobody says: days, weeks and years, as far as it is long enough to show them."""

from __future__ import annotations

from datetime import timedelta

from analytics.forecasting.structure import Structure
from protocols.errors import ResultsError

CYCLES = 2  # how often a season must have been seen
FEWEST_VALUES = 20
MOST_PERIODS = 2_000  # longer seasons have too many phases to be told from the level
DAY, WEEK, YEAR = timedelta(days=1), timedelta(weeks=1), timedelta(days=365.25)


def usual_seasons(step: timedelta, periods: int) -> Structure:
    """The seasons of a series of so many periods of this length.

    >>> usual_seasons(timedelta(minutes=30), 3456).seasons, usual_seasons(timedelta(days=1), 900).seasons
    ((48, 336), (7, 365))
    >>> usual_seasons(timedelta(days=1), 10).seasons, usual_seasons(timedelta(days=30.4375), 60).seasons
    ((), (12,))
    """
    found = []
    for cycle in (DAY, WEEK, YEAR):
        season = round(cycle / step)
        exact = cycle == YEAR or season * step == cycle
        if exact and 2 <= season <= MOST_PERIODS and CYCLES * season <= periods:
            found.append(season)
    return Structure.of(found)


def check_enough(what: str, known: int, structure: Structure) -> None:
    """Refuse to forecast from too little."""
    needed = max([FEWEST_VALUES, *(CYCLES * season for season in structure.seasons)])
    if known < needed:
        seasons = f" with seasons of {' and '.join(map(str, structure.seasons))} periods" if structure.seasons else ""
        hint = "collect for longer, or leave out the longest season" if structure.seasons else "collect for longer"
        raise ResultsError(
            f"{what}: {known} values are too little to say anything; a forecast{seasons} needs {needed}", hint
        )
