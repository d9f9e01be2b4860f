"""A series to forecast, and its structural model: unbiased values, of whose variance it is known how much is noise.

    y_t = level_t + deviation_t + sum_j (c_j cos(w_j t) + s_j sin(w_j t)) + u_t + b_t + e_t

    level       a random walk with small steps: where the series stands in the long run
    deviation   an AR(1): what is forgotten again, and does not widen forecasts without end
    c_j, s_j    the harmonics of every season, which drift slowly
    u_t         irregular: what nobody could have predicted; part of the truth
    b_t         noise of memos, of known variance B_t; it stays while devices keep their memos
    e_t         fresh noise, of known variance R_t

The state is (level, deviation, c_1, s_1, ...). Harmonics are kept in coordinates that turn with them: then nothing but
the deviation changes from one period to the next without noise, and the turning is in the regressors. Turning does not
change noise that is the same in all directions, so this is the model with rotating harmonics (Harvey, 1989).

If nobody says which seasons a series has, they are days, weeks and years, as far as it is long enough to show them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from math import cos, pi, sin

import numpy as np

from protocols.arrays import Floats, Whole
from protocols.errors import ResultsError, SettingsError

LEVEL, DEVIATION, FIRST_HARMONIC = 0, 1, 2
SHORTEST_HARMONICS, LONGER_HARMONICS, MOST_SIDES = 8, 3, 3
ALWAYS_MODULATED = 2  # that many first harmonics of the day have a side band on each side in any case
MOST_SEASONS, LONGEST_SEASON = 3, 100_000
CYCLES, UNSEASONAL = 4, 24  # seasons, or periods, over which the size of future noise is averaged
GRAIN = 2.0**40  # regressors are rounded to this grain, so that every machine has the same


@dataclass(frozen=True, eq=False)
class Series:
    """Values of consecutive periods; NaN where one is missing or suppressed.

    Values are unbiased estimates: never clipped at 0, never made consistent. `fresh` is the variance R_t of noise that
    is new in every period, `memo` the variance B_t of noise that stays (0 where the value is exact).
    """

    name: str
    values: Floats
    fresh: Floats
    memo: Floats
    first: int = 0  # the number of the first period
    clock: Callable[[Whole], Whole] = lambda periods: periods
    """From numbers of periods to those that count for seasons: with a time zone, as the clock on the wall counts.
    Without one, all follow each other."""

    @staticmethod
    def exact(name: str, values: Floats) -> "Series":
        """A series without noise."""
        return Series(name, values, np.zeros(len(values)), np.zeros(len(values)))

    def __len__(self) -> int:
        return len(self.values)

    def before(self, place: int) -> "Series":
        """The periods before this place: none before the first."""
        place = max(0, place)
        return replace(self, values=self.values[:place], fresh=self.fresh[:place], memo=self.memo[:place])

    def numbers(self, begin: int, end: int) -> Whole:
        """Of the periods at these places, from which seasons have their phases; also of those to come."""
        return self.clock(np.arange(self.first + begin, self.first + end))

    @property
    def known(self) -> int:
        """How many values there are."""
        return int(np.isfinite(self.values).sum())


def future_noise(recent: Floats, phases: int, ahead: int) -> Floats:
    """The variance of noise `[..., step]` to expect in the next periods, from that of recent ones `[..., period]`.

    It is the mean of the same phases of these seasons.

    Noise grows with the number of reports, which has seasons too.

    >>> future_noise(np.array([1.0, 5.0] * 10), 2, 3).tolist()
    [1.0, 5.0, 1.0]
    """
    missing = np.full((*recent.shape[:-1], -recent.shape[-1] % phases), np.nan)
    cycles = np.concatenate([missing, recent], axis=-1).reshape(*recent.shape[:-1], -1, phases)
    expected, overall = mean_of_known(cycles, axis=-2), mean_of_known(recent, axis=-1)[..., None]
    expected = np.where(np.isnan(expected), np.where(np.isnan(overall), 0.0, overall), expected)
    return expected[..., np.arange(ahead) % phases]


def mean_of_known(numbers: Floats, axis: int | tuple[int, ...]) -> Floats:
    """The mean of those that are known; NaN if none is."""
    return np.ma.filled(np.ma.masked_invalid(numbers).mean(axis=axis), np.nan)


@dataclass(frozen=True)
class Structure:
    """The seasons of a model, in periods, ascending.

    >>> Structure.of([168, 24]).seasons
    (24, 168)
    >>> Structure.of([7]).size, Structure.of([24, 168]).size, Structure((24, 168), sides=3).size
    (8, 32, 120)
    """

    seasons: tuple[int, ...] = ()
    sides: int = 0
    """Side bands around each harmonic of the shortest season: how many courses it has within the next longer one."""

    @staticmethod
    def of(seasons: Sequence[int]) -> "Structure":
        """The structure of these seasons, in any order; raises SettingsError if they cannot be seasons."""
        for season in seasons:
            if not 2 <= season <= LONGEST_SEASON:
                raise SettingsError(f"a season of {season} periods", f"choose 2 to {LONGEST_SEASON:,} periods")
        if len(set(seasons)) > MOST_SEASONS:
            raise SettingsError(f"{len(set(seasons))} seasons", f"at most {MOST_SEASONS}")
        return Structure(tuple(sorted(set(seasons))))

    @property
    def modulated(self) -> bool:
        """Whether the next longer season consists of whole shortest ones, as weeks do of days."""
        return len(self.seasons) > 1 and self.seasons[1] % self.main == 0

    @cached_property
    def waves(self) -> tuple[tuple[int, int], ...]:
        """The harmonics (place of the season, number), without those that a shorter season has already.

        Where days make up weeks, a day of the weekend may have another course than one of the week: each harmonic of
        the day is then modulated by those of the week. If a week has 7 days, these are numbers around 7, 14, ...
        """
        found: dict[Fraction, tuple[int, int]] = {}
        for place, season in enumerate(self.seasons):
            numbers = set(range(1, (LONGER_HARMONICS if place else SHORTEST_HARMONICS) + 1))
            if place == 1 and self.modulated:
                middles = range(season // self.main, season, season // self.main)
                for sides, most in ((1, ALWAYS_MODULATED), (self.sides, SHORTEST_HARMONICS)):
                    numbers |= {middle + side for middle in middles[:most] for side in range(-sides, sides + 1)}
            for number in sorted(numbers):
                if 2 * number <= season:
                    found.setdefault(Fraction(number, season), (place, number))
        return tuple(found.values())

    @cached_property
    def groups(self) -> Whole:
        """For each harmonic coefficient of the state, the place of its season."""
        places = [place for place, number in self.waves for _ in range(self._columns(place, number))]
        return np.array(places, dtype=np.int64)

    @property
    def main(self) -> int:
        """The shortest season; 1 without seasons."""
        return self.seasons[0] if self.seasons else 1

    @property
    def longest(self) -> int:
        """The longest season; 1 without seasons."""
        return self.seasons[-1] if self.seasons else 1

    @property
    def size(self) -> int:
        """The number of states."""
        return FIRST_HARMONIC + len(self.groups)

    def regressors(self, numbers: Whole) -> Floats:
        """How the states make up the series, `[period, state]`, in periods with these numbers."""
        table = np.ones((len(numbers), self.size))
        column = FIRST_HARMONIC
        for place, number in self.waves:
            season = self.seasons[place]
            for turn in (cos, sin)[: self._columns(place, number)]:
                table[:, column] = _wave(turn, number, season)[numbers % season]
                column += 1
        return table

    def _columns(self, place: int, number: int) -> int:
        return 1 if 2 * number == self.seasons[place] else 2  # the sine of half a turn is 0 in every period


@lru_cache(maxsize=512)
def _wave(turn: Callable[[float], float], number: int, season: int) -> Floats:
    wave = np.array([turn(2 * pi * (number * phase % season) / season) for phase in range(season)])
    return np.asarray(np.round(wave * GRAIN) / GRAIN)


SEEN_CYCLES = 2  # how often a season must have been seen
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
        if exact and 2 <= season <= MOST_PERIODS and SEEN_CYCLES * season <= periods:
            found.append(season)
    return Structure.of(found)


def values_needed(structure: Structure) -> int:
    """How many values of a series must be known for a forecast."""
    return max(FEWEST_VALUES, SEEN_CYCLES * structure.longest)


def check_enough(what: str, known: int, structure: Structure) -> None:
    """Refuse to forecast from too little."""
    needed = values_needed(structure)
    if known < needed:
        seasons = f" with seasons of {' and '.join(map(str, structure.seasons))} periods" if structure.seasons else ""
        hint = "collect for longer, or leave out the longest season" if structure.seasons else "collect for longer"
        raise ResultsError(
            f"{what}: {known} values are too little to say anything; a forecast{seasons} needs {needed}", hint
        )
