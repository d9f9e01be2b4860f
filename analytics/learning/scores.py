"""How good a classifier is: accuracy, AUC, and by how much groups of people are treated differently."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.votes import Floats

Whole = NDArray[np.integer[Any]]
FEWEST = 30  # people of a group: fewer say nothing about a rate


def accuracy(scores: Floats, labels: Whole) -> float:
    """The share of records whose label has the largest score; the first one, where several have."""
    return float((scores.argmax(axis=1) == labels).mean())


def auc(scores: Floats, labels: Whole) -> float:
    """How often a record with a label has a larger score for it than one without; ties count half.

    With more than two labels: each against the others, and their mean. NaN if there is one label only.

    >>> auc(np.log([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]), np.array([0, 0, 1, 1]))
    0.75
    """
    odds = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
    wanted = [1] if scores.shape[1] == 2 else range(scores.shape[1])
    found = [_above(odds[:, label], labels == label) for label in wanted if 0 < (labels == label).sum() < len(labels)]
    return float(np.mean(found)) if found else float("nan")


def gaps(scores: Floats, labels: Whole, groups: Whole, positive: int) -> dict[str, float]:
    """The largest differences between groups of at least `FEWEST` people.

        parity          in the share that is predicted to be `positive`
        opportunity     in the same share, of those who are
        accuracy        in the share that is predicted rightly

    NaN where fewer than two groups are large enough.
    """
    predicted = scores.argmax(axis=1)
    return {
        "parity": _gap(predicted == positive, groups),
        "opportunity": _gap((predicted == positive)[labels == positive], groups[labels == positive]),
        "accuracy": _gap(predicted == labels, groups),
    }


def _gap(happened: NDArray[np.bool_], groups: Whole) -> float:
    sizes, hits = np.bincount(groups), np.bincount(groups, weights=happened)
    large = sizes >= FEWEST
    return float(np.ptp(hits[large] / sizes[large])) if large.sum() >= 2 else float("nan")


def _above(scores: Floats, chosen: NDArray[np.bool_]) -> float:
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    inside = int(chosen.sum())
    return float((ranks[chosen].sum() - inside * (inside + 1) / 2) / (inside * (len(scores) - inside)))
