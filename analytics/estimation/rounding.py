"""Rounding of estimates whose exact digits would reveal the number of reports (PROTOCOLS 7)."""

from __future__ import annotations

import numpy as np

from analytics.estimation.estimates import Estimates


def rounded(estimates: Estimates) -> Estimates:
    """To a tenth of the standard error or a little coarser: n could be computed from the last digits.

    Steps are 1, 2 or 5 times a power of ten. Numbers without an error, and unknown ones, stay as they are.

    >>> rounded(Estimates(*np.array([[0.12345], [0.031], [0.0612], [0.1858]]))).value.round(6).tolist()
    [0.125]
    """
    noisy = np.isfinite(estimates.error) & (estimates.error > 0)
    least = np.where(noisy, estimates.error, 1.0) / 10
    decade = 10.0 ** np.floor(np.log10(least))
    steps = np.select([least <= digit * decade for digit in (1, 2, 5)], [decade, 2 * decade, 5 * decade], 10 * decade)
    parts = estimates.value, estimates.error, estimates.low, estimates.high
    return Estimates(*(np.where(noisy, np.round(part / steps) * steps, part) for part in parts))
