"""`demand`: a year of hourly demand by area: seasons of a day, a week and a year, holidays, growth and a shock.

How many people of an area ask for something in an hour follows from the calendar and from weather that lingers for
hours, so any hour is computed directly.
"""

import numpy as np

from producers.scenarios.base import Presences, check_size, randomness
from protocols.arrays import Floats

HOURS_OF_YEAR, AREAS = 8760, 8
ACTIVITY = 0.2  # probability that a device asks for something in a busy hour
GROWTH = 0.3  # how much more demand there is after a year, as a share
AWAY = 0.1  # probability that a device asks from another area than its own
RESIDENTIAL = np.interp(np.arange(24), [0, 4, 7, 10, 17, 20, 24], [0.35, 0.15, 0.7, 0.5, 0.8, 1.0, 0.35])
BUSINESS = np.interp(np.arange(24), [0, 5, 8, 11, 14, 18, 22, 24], [0.1, 0.1, 0.7, 1.0, 0.9, 0.6, 0.2, 0.1])
WEEKEND = {"residential": 1.15, "business": 0.35}
HOLIDAYS = (0, 98, 120, 127, 193, 226, 304, 314, 358, 359)  # days of the year
SUMMER = 0.25  # how much less there is in midsummer than in midwinter, as a share of the mean
WEATHER_MEMORY, WEATHER_SIZE, WEATHER_HOURS = 0.9, 0.12, 72
SHOCK_DAY, SHOCK_DAYS, SHOCK_SIZE = 200, 3, 2.5  # a storm in the first area


class Demand:
    """One period per hour; hour 0 is midnight of a Monday in winter.

    Attribute: `area`; the first half of the areas is residential, the others are business districts. On holidays every
    area is as on a Sunday. For three days from day 200 the first area has 2.5 times its demand.

    >>> town = Demand(devices=3000, periods=48, seed=1)
    >>> night, evening = town.presences(4), town.presences(20)
    >>> len(night.devices) < len(evening.devices)
    True
    >>> town.attributes["area"][:2]
    ('area 1', 'area 2')
    """

    name = "demand"

    def __init__(self, devices: int = 10_000, periods: int = HOURS_OF_YEAR, seed: int = 0) -> None:
        check_size(devices, periods)
        self.devices, self.periods, self.seed = devices, periods, seed
        self.attributes = {"area": tuple(f"area {number}" for number in range(1, AREAS + 1))}
        rng = randomness(seed, "homes")
        weights = rng.uniform(0.5, 1.5, AREAS)
        self._home = rng.choice(AREAS, devices, p=weights / weights.sum())
        self._residential = np.arange(AREAS) < AREAS // 2

    def presences(self, period: int) -> Presences:
        """Who asks for something in this hour, and where."""
        rng = randomness(self.seed, "hour", period)
        chance = np.minimum(ACTIVITY * self.intensity(period)[self._home], 1.0)
        devices = np.flatnonzero(rng.random(self.devices) < chance)
        if not len(devices):
            devices = np.array([period % self.devices])
        elsewhere = rng.integers(0, AREAS, len(devices))
        area = np.where(rng.random(len(devices)) < AWAY, elsewhere, self._home[devices])
        return Presences(period, devices.astype(np.uint64), {"area": area.astype(np.int64)})

    def intensity(self, period: int) -> Floats:
        """The demand of every area in an hour: 1 in a busy one."""
        day, hour = divmod(period, 24)
        off = day % 7 >= 5 or day % 365 in HOLIDAYS
        profile = np.where(self._residential, RESIDENTIAL[hour], BUSINESS[hour])
        if off:
            profile = profile * np.where(self._residential, WEEKEND["residential"], WEEKEND["business"])
        year = 1 + SUMMER / 2 * np.cos(2 * np.pi * period / HOURS_OF_YEAR)
        grown = 1 + GROWTH * period / HOURS_OF_YEAR
        shocked = np.ones(len(profile))
        if SHOCK_DAY <= day < SHOCK_DAY + SHOCK_DAYS:
            shocked[0] = SHOCK_SIZE
        return np.asarray(profile * year * grown * shocked * np.exp(self._weather(period)))

    def _weather(self, period: int) -> Floats:
        """What lingers: a sum of the last hours' draws with falling weights, some of it the same in all areas."""
        ago = range(min(WEATHER_HOURS, period + 1))
        drawn = np.stack([randomness(self.seed, "weather", period - hours).normal(size=AREAS + 1) for hours in ago])
        steps = WEATHER_SIZE * np.sqrt(1 - WEATHER_MEMORY**2) * (0.8 * drawn[:, :1] + 0.6 * drawn[:, 1:])
        return np.asarray((WEATHER_MEMORY ** np.array(ago)[:, None] * steps).sum(axis=0))
