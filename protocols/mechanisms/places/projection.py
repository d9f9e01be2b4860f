"""Latitude and longitude to metres: the transverse Mercator projection of the WGS 84 ellipsoid.

Krüger's series in the third flattening n, to n^4 (as in Karney, "Transverse Mercator with an accuracy of a few
nanometers", Journal of Geodesy 2011, equations 7 to 35). Within 10 degrees of the central meridian its own error is
below a millimetre; distances on the plane differ from those on the ellipsoid by x^2 / (2 R^2), which is 0.01 % at
100 km from the meridian.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from math import atanh, radians, sinh

import numpy as np

from hearsay_device.attributes import ALPHA, ECCENTRICITY, MERIDIAN
from protocols.arrays.aliases import Floats

_N = 1 / 298.257223563 / (2 - 1 / 298.257223563)
_BETA = (  # back: the series of the way there is `ALPHA`, which devices have as numbers
    _N / 2 - 2 * _N**2 / 3 + 37 * _N**3 / 96 - _N**4 / 360,
    _N**2 / 48 + _N**3 / 15 - 437 * _N**4 / 1440,
    17 * _N**3 / 480 - 37 * _N**4 / 840,
    4397 * _N**4 / 161280,
)


@dataclass(frozen=True)
class TransverseMercator:
    """The plane whose point 0, 0 is at a latitude and longitude, plus what a known system adds to x and y.

    >>> toronto = known_projection("EPSG:32617")
    >>> [round(float(part)) for part in toronto.metres(43.6425667, -79.3871389)]
    [630084, 4833439]
    >>> [round(float(part), 7) for part in toronto.degrees(*toronto.metres(43.6425667, -79.3871389))]
    [43.6425667, -79.3871389]
    """

    latitude: float
    longitude: float
    scale: float = 1.0
    east: float = 0.0
    north: float = 0.0

    def metres(self, latitude: Floats | float, longitude: Floats | float) -> tuple[Floats, Floats]:
        """Metres east and north."""
        away = np.radians((np.asarray(longitude, dtype=np.float64) - self.longitude + 540) % 360 - 180)
        sine = np.sin(np.radians(np.asarray(latitude, dtype=np.float64)))
        t = np.sinh(np.arctanh(sine) - ECCENTRICITY * np.arctanh(ECCENTRICITY * sine))
        xi, eta = np.arctan2(t, np.cos(away)), np.arctanh(np.sin(away) / np.sqrt(1 + t * t))
        up, across = xi.copy(), eta.copy()
        for j, alpha in enumerate(ALPHA, 1):
            up = up + alpha * np.sin(2 * j * xi) * np.cosh(2 * j * eta)
            across = across + alpha * np.cos(2 * j * xi) * np.sinh(2 * j * eta)
        size = self.scale * MERIDIAN
        return self.east + size * across, self.north + size * (up - self._start)

    def degrees(self, x: Floats | float, y: Floats | float) -> tuple[Floats, Floats]:
        """Latitude and longitude."""
        size = self.scale * MERIDIAN
        up = (np.asarray(y, dtype=np.float64) - self.north) / size + self._start
        across = (np.asarray(x, dtype=np.float64) - self.east) / size
        xi, eta = up.copy(), across.copy()
        for j, beta in enumerate(_BETA, 1):
            xi = xi - beta * np.sin(2 * j * up) * np.cosh(2 * j * across)
            eta = eta - beta * np.cos(2 * j * up) * np.sinh(2 * j * across)
        t = np.sin(xi) / np.hypot(np.sinh(eta), np.cos(xi))
        sine = np.sin(np.arctan(t))
        for _ in range(6):  # each step gains more than two digits
            sine = np.tanh(np.arcsinh(t) + ECCENTRICITY * np.arctanh(ECCENTRICITY * sine))
        away = np.degrees(np.arctan2(np.sinh(eta), np.cos(xi)))
        return np.degrees(np.arcsin(sine)), (away + self.longitude + 540) % 360 - 180

    @cached_property
    def _start(self) -> float:
        """How far the point 0, 0 is from the equator along its meridian, in units of the projection."""
        sine = float(np.sin(radians(self.latitude)))
        xi = float(np.arctan(sinh(atanh(sine) - ECCENTRICITY * atanh(ECCENTRICITY * sine))))
        return xi + sum(alpha * float(np.sin(2 * j * xi)) for j, alpha in enumerate(ALPHA, 1))


def known_projection(crs: str) -> TransverseMercator | None:
    """The projection of a UTM zone on WGS 84 (EPSG:32601 to 32660 north, 32701 to 32760 south); None for others."""
    found = re.fullmatch(r"EPSG:32([67])(0[1-9]|[1-5][0-9]|60)", crs)
    if found is None:
        return None
    return TransverseMercator(0.0, 6.0 * int(found[2]) - 183, 0.9996, 500_000.0, 1e7 if found[1] == "7" else 0.0)
