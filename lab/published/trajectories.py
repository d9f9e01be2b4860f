"""Paths of people from tables of areas, without any report: the attack of Xu, Tu and others (2017).

From one period to the next as many people stay as the numbers in each area allow; the others move. What is found is
compared with true paths under the matching of both that suits the attacker best. Most people stay where they are, so
somebody who sees no table names most positions: the figure means nothing without that line of luck.
"""

import numpy as np

from protocols.arrays import Floats, Whole


def recovered(people: Whole) -> Whole:
    """Paths `[period, person]` that fit numbers of people `[period, area]`, with as few moves as possible.

    >>> recovered(np.array([[2, 1], [1, 2]])).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    paths = [np.repeat(np.arange(people.shape[1]), people[0])]
    for there in people[1:]:
        left, after = there.copy(), np.full(len(paths[0]), -1)
        for area, stay in enumerate(np.minimum(there, np.bincount(paths[-1], minlength=len(there)))):
            after[np.flatnonzero(paths[-1] == area)[:stay]] = area
            left[area] -= stay
        after[after < 0] = np.repeat(np.arange(len(there)), left)
        paths.append(after)
    return np.array(paths)


def whole_people(shares: Floats, people: int) -> Whole:
    """Shares as numbers of people: where the sum of shares passes the middle of a person, it is one of that value.

    >>> whole_people(np.array([0.5, 0.34, 0.16]), 10).tolist()
    [5, 3, 2]
    """
    ends = np.cumsum(shares) / shares.sum() * people
    return np.asarray(np.bincount(np.searchsorted(ends, np.arange(people) + 0.5), minlength=len(shares)))


def positions_right(paths: Whole, truth: Whole) -> float:
    """The share of positions that are right under the best matching of paths to people."""
    from scipy.optimize import linear_sum_assignment  # takes over a second to import

    same = (paths[:, :, None] == truth[:, None, :]).sum(axis=0)
    return float(same[linear_sum_assignment(-same)].sum() / truth.size)
