"""Incidents with their places, stations, areas and response times: of a made-up city, or from a CSV file."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

NUMBERS = ("x", "y", "station_x", "station_y", "response_minutes")
AREAS = ("zone", "city", "district")
"""Columns of a file: places in metres, the station that went out, and minutes. Areas may be missing."""
MOST_KINDS = 30


@dataclass(frozen=True, eq=False)
class Incidents:
    """One entry for each incident; `known` has what nobody needs to hide: hour, weekday, kind."""

    x: Floats
    y: Floats
    station_x: Floats
    station_y: Floats
    minutes: Floats
    areas: Mapping[str, Whole]
    known: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.x)

    def some(self, rows: Whole) -> "Incidents":
        """Only these incidents."""
        areas, known = ({name: column[rows] for name, column in part.items()} for part in (self.areas, self.known))
        own = (self.x, self.y, self.station_x, self.station_y, self.minutes)
        return Incidents(*(column[rows] for column in own), areas, known)


def made_up_city(incidents: int, seed: int) -> Incidents:
    """A city of 24 by 18 km: towns and the country between them, and 12 stations; streets can be slow.

    The nearest station goes out. Areas are the parts of the plane nearest to 40 (zones), 90 (cities) and 250
    (districts) centres.
    """
    random = np.random.default_rng(seed)
    size = np.array([24_000.0, 18_000.0])
    towns = random.uniform(0.15, 0.85, (5, 2)) * size
    town = random.choice(6, incidents, p=[0.4, 0.15, 0.1, 0.1, 0.05, 0.2])
    around = towns[np.minimum(town, 4)] + random.normal(0, 1500, (incidents, 2))
    places = np.where((town < 5)[:, None], around, random.uniform(0, 1, (incidents, 2)) * size).clip(0, size - 1)
    stations = np.concatenate([towns, random.uniform(0.1, 0.9, (7, 2)) * size])
    station = stations[_nearest(places, stations)]
    hour, weekday, kind = (
        random.integers(24, size=incidents),
        random.integers(7, size=incidents),
        random.integers(4, size=incidents),
    )
    far = np.hypot(*(places - station).T) / 1000
    crowded = np.exp(-np.hypot(*(places - towns[0]).T) / 3000)
    rush = np.isin(hour, (7, 8, 17, 18)) & (weekday < 5)
    minutes = 2.5 + 0.7 * (kind == 3) + far * (1.3 + 0.6 * crowded + 0.5 * rush) + random.gamma(4, 1.1, incidents)
    areas = {
        name: _nearest(places, random.uniform(0, 1, (count, 2)) * size)
        for name, count in zip(AREAS, (40, 90, 250), strict=True)
    }
    known = {
        "hour_sin": np.sin(hour * np.pi / 12),
        "hour_cos": np.cos(hour * np.pi / 12),
        "rush": rush.astype(np.float64),
        **{f"kind_{one}": (kind == one).astype(np.float64) for one in range(1, 4)},
    }
    return Incidents(*places.T, *station.T, minutes, areas, known)


def from_csv(path: Path) -> Incidents:
    """The incidents of a file with the columns `NUMBERS`, any of `AREAS`, and others, which are known to everybody."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows or not set(NUMBERS) <= set(rows[0]):
        raise SystemExit(f"{path}: the first line must name the columns {', '.join(NUMBERS)}, and rows must follow")
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    try:
        numbers = [np.array(columns[name], dtype=np.float64) for name in NUMBERS]
    except ValueError:
        raise SystemExit(f"{path}: one of the columns {', '.join(NUMBERS)} has an entry that is no number") from None
    areas = {name: np.unique(columns[name], return_inverse=True)[1] for name in AREAS if name in columns}
    known: dict[str, Floats] = {}
    for name in columns.keys() - {*NUMBERS, *AREAS}:
        known |= _features(name, columns[name])
    return Incidents(*numbers, areas, dict(sorted(known.items())))


def _features(name: str, entries: list[str]) -> dict[str, Floats]:
    """A column of numbers as it is, one of few words as a column for each; of many words: nothing."""
    try:
        return {name: np.array(entries, dtype=np.float64)}
    except ValueError:
        kinds = sorted(set(entries))[1:]
        if len(kinds) >= MOST_KINDS:
            return {}
        return {f"{name}_{kind}": (np.array(entries) == kind).astype(np.float64) for kind in kinds}


def _nearest(places: Floats, centres: Floats) -> Whole:
    far = (places[:, None, 0] - centres[:, 0]) ** 2 + (places[:, None, 1] - centres[:, 1]) ** 2
    return far.argmin(axis=1)
