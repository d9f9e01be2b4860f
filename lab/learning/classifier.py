"""Naive Bayes from counts of pairs, a classifier that needs no records; and how good a classifier is.

    score of y = b(y) + t sum over attributes of ln (1 + s R),     R = r / (P(x) P(y))

R is by how much the pair (x, y) is more frequent than if both were independent, from the unbiased table (`contrast`).
It is shrunk by its signal share s: the noise is the variance of R, which is known, and the signal what the squares of R
have beyond it, on average over the table. t and b are fitted to what is published (docs/learning.md): with t = 1 and
b = ln P(y), ranks are right, but far too many rare labels are predicted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lab.learning.model import Measured, Records, Shares, agree, contrast
from protocols.arrays import Floats, Mask, Values

FLOOR = 1e-4  # of P(x | y) times the number of values: no single answer decides alone
RATIO = 0.02  # of P(x | y) / P(x), for the same reason
BISECTIONS, ROUNDS = 20, 30
FEWEST = 30  # people of a group: fewer say nothing about a rate


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """`prior[y]` are shares, `ratios[attribute][x, y]` logarithms: of an attribute that says nothing, 0.

    `expected` is the mean of the sum of logarithms for the label that a person has.
    """

    prior: Floats
    ratios: Mapping[str, Floats]
    expected: float

    def scores(self, records: Records) -> Floats:
        """The score `[record, y]` of each label, fitted to these records."""
        sums = np.zeros((len(next(iter(records.values()))), len(self.prior)))
        for name, ratio in self.ratios.items():
            sums += ratio[records[name]]
        low, high = 0.0, 1.0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            scores = self._with_shares(middle * sums)
            mean = float((np.exp(scores) * sums).sum(axis=1).mean())
            low, high = (middle, high) if mean < self.expected else (low, middle)
        return scores

    def _with_shares(self, scores: Floats) -> Floats:
        """Logarithms of probabilities, so that each label has its share over all records."""
        for _ in range(ROUNDS):
            scores = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
            scores = scores + np.log(self.prior / np.exp(scores).mean(axis=0))
        return np.asarray(scores - np.logaddexp.reduce(scores, axis=1)[:, None])


def naive_bayes(measured: Measured, label: str) -> NaiveBayes:
    """The classifier of `label`, from the pairs that have it.

    >>> from lab.learning.model import counted
    >>> people = {"x": np.repeat([0, 1], 500), "y": np.repeat([0, 1, 0, 1], [400, 100, 100, 400])}
    >>> found = naive_bayes(counted({"x": 2, "y": 2}, people, [("x", "y")]), "y")
    >>> found.scores({"x": np.array([0, 1])}).argmax(axis=1).tolist()
    [0, 1]
    """
    ones, _ = agree(measured)
    prior = np.maximum(ones[label], FLOOR)
    ratios, expected = {}, 0.0
    for pair, shares in measured.pairs.items():
        if label in pair:
            name, table = (pair[0], shares) if pair[1] == label else (pair[1], shares.T)
            values = np.maximum(ones[name], FLOOR / len(ones[name]))
            ratios[name] = _log_ratios(table, values, prior)
            expected += float((np.outer(values, prior) * np.exp(ratios[name]) * ratios[name]).sum())
    return NaiveBayes(prior / prior.sum(), ratios, expected)


def _log_ratios(shares: Shares, values: Floats, prior: Floats) -> Floats:
    even = np.outer(values, prior)
    ratio = contrast(np.where(shares.known, shares.value, even), values, prior) / even
    noise = np.maximum(np.nan_to_num(shares.variance), 1e-30) / even**2
    weight = np.where(shares.known, 1 / noise, 0.0)
    signal = max(0.0, float((weight * (ratio**2 - noise)).sum() / max(weight.sum(), 1e-30)))
    return np.asarray(np.log(np.maximum(1 + ratio * signal / (signal + noise), RATIO)))


def auc(scores: Floats, labels: Values) -> float:
    """How often a record with a label has a larger score for it than one without; ties count half.

    With more than two labels: each against the others, and their mean. NaN if there is one label only.

    >>> auc(np.log([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]), np.array([0, 0, 1, 1]))
    0.75
    """
    from scipy.stats import mannwhitneyu  # takes over a second to import

    odds, found = scores - np.logaddexp.reduce(scores, axis=1)[:, None], []
    for label in [1] if scores.shape[1] == 2 else range(scores.shape[1]):
        own, others = odds[labels == label, label], odds[labels != label, label]
        if len(own) and len(others):
            found.append(mannwhitneyu(own, others).statistic / (len(own) * len(others)))
    return float(np.mean(found)) if found else float("nan")


def gaps(scores: Floats, labels: Values, groups: Values, positive: int) -> dict[str, float]:
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


def _gap(happened: Mask, groups: Values) -> float:
    sizes, hits = np.bincount(groups), np.bincount(groups, weights=happened)
    large = sizes >= FEWEST
    return float(np.ptp(hits[large] / sizes[large])) if large.sum() >= 2 else float("nan")
