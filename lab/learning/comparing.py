"""What a classifier learns from a survey of crosses, where the truth is known.

Some people answer a survey that asks each attribute together with the label, through the devices' own code. A naive
Bayes classifier is made from the published tables, and another from synthetic records; both are tried on other people,
beside one that sees true records and the largest class.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.estimation import estimate
from lab.evaluation.measuring import Progress, respondents, supports
from lab.evaluation.methods import made_up
from lab.evaluation.scores import Mean, plain
from lab.evaluation.truth import crossing, one_period
from lab.learning.classifier import accuracy, auc, gaps, naive_bayes
from lab.learning.model import fit
from lab.learning.records import distances, draw_records
from lab.learning.tables import Measured, Pair, Records, Shares, counted
from protocols.arrays import Counts, Floats, Places
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import MIN_SHARE, Survey

MAJORITY, TRUE, CROSSES, SYNTHETIC = "majority class", "no privacy", "crosses", "synthetic records"


@dataclass(frozen=True, eq=False)
class People:
    """Those who answer (`train`) and those on whom is tried (`test`); `sizes` has the label's number of values, too."""

    sizes: dict[str, int]
    label: str
    train: Records
    test: Records
    sensitive: str | None = None

    @property
    def features(self) -> list[str]:
        return [name for name in self.sizes if name != self.label]

    @property
    def labels(self) -> Counts:
        """How many of those who answer have each label."""
        return np.bincount(self.train[self.label], minlength=self.sizes[self.label])


@dataclass(frozen=True)
class Learnt:
    """How good one classifier is: means over runs, and their standard errors."""

    source: str
    eps: float | None
    reveals: float | None  # the exact loss of one report
    figures: dict[str, Mean]

    def record(self) -> dict[str, Any]:
        """All figures as plain data; None where one is not known."""
        return {"source": self.source, "eps": self.eps, "reveals": self.reveals, **plain(self.figures)}


def split(people: int, share: float, seed: int) -> tuple[Places, Places]:
    """The rows of those who answer, and of this share, on whom is tried.

    >>> [len(part) for part in split(10, 0.3, seed=1)]
    [7, 3]
    """
    order = np.random.default_rng(seed).permutation(people)
    held_out = round(people * share)
    return np.sort(order[held_out:]), np.sort(order[:held_out])


def compare(
    people: People,
    budgets: Sequence[float],
    *,
    alpha: float | None = 0.5,
    runs: int = 10,
    seed: int = 0,
    progress: Progress = lambda done, total, what: None,
) -> list[Learnt]:
    """Every way to learn, at every budget. `alpha`: eps_1 is alpha times eps_inf; None: one report, without a memo."""
    pairs = [(name, people.label) for name in people.features]
    largest = np.tile(np.log(np.maximum(people.labels, 0.5)), (len(people.test[people.label]), 1))
    truth = naive_bayes(counted(people.sizes, people.train, pairs), people.label)
    found = [
        Learnt(MAJORITY, None, None, _means([_figures(people, largest)])),
        Learnt(TRUE, None, None, _means([_figures(people, truth.scores(people.test))])),
    ]
    for at, eps in enumerate(budgets):
        scheme = Scheme(survey(people, eps, alpha))
        reveals = scheme.guarantees.per_report.whole
        learnt: dict[str, list[dict[str, float]]] = {CROSSES: [], SYNTHETIC: []}
        for run, respondent in enumerate(respondents(scheme, runs, seed)):
            progress(at * runs + run, len(budgets) * runs, f"eps {eps:g}")
            for source, figures in _learn(people, pairs, respondent, seed=run):
                learnt[source].append(figures)
        found += [Learnt(source, eps, reveals, _means(figures)) for source, figures in learnt.items()]
    return found


def survey(people: People, eps: float, alpha: float | None) -> Survey:
    """A survey that asks the label, and every attribute together with it, under made-up names.

    Attributes must be questions of their own, too; (almost) nobody draws these.
    """
    budgets = {"eps": eps} if alpha is None else {"eps_inf": eps, "eps_1": alpha * eps}
    names = {name: f"a{place}" for place, name in enumerate(people.sizes)}
    shares = {name: None if name == people.label else MIN_SHARE for name in names}
    attributes = [
        {"name": names[name], "values": [str(value) for value in range(k)], "share": shares[name]}
        for name, k in people.sizes.items()
    ]
    crosses = [{"of": [names[name], names[people.label]]} for name in people.features]
    return made_up({"id": "learning", **budgets, "attributes": attributes, "crosses": crosses}, people.sizes)


def _learn(
    people: People, pairs: list[Pair], respondent: Respondent, seed: int
) -> Iterator[tuple[str, dict[str, float]]]:
    measured = _collected(people, pairs, respondent)
    model = fit(measured)
    own = naive_bayes(measured, people.label)
    yield CROSSES, _figures(people, own.scores(people.test)) | {"dropped": float(len(own.dropped))}
    records = draw_records(model, len(people.train[people.label]), seed)
    from_records = naive_bayes(counted(people.sizes, records, pairs), people.label)
    far = distances(records, counted(people.sizes, people.train, pairs), model.tables.ones)
    variation = {"variation": float(np.mean([distance.records for distance in far.values()]))}
    yield SYNTHETIC, _figures(people, from_records.scores(people.test)) | variation


def _collected(people: People, pairs: list[Pair], respondent: Respondent) -> Measured:
    """What the reports of those who answer say: estimates with variances."""
    asked = crossing(one_period(people.sizes, people.train), pairs)
    questions = zip(asked.sizes, respondent.scheme.questions, strict=True)
    counts = supports(respondent, asked.moments[0], asked.sizes)
    found = {}
    for (name, question), (supported, n) in zip(questions, counts, strict=True):
        if n > 0:
            estimates = estimate(supported, n, question.channel)
            found[name] = Shares(estimates.value, estimates.error**2)
    return Measured(
        people.sizes,
        {name: found[name] for name in people.sizes if name in found},
        {pair: found[name].of_pair(people.sizes, pair) for name, pair in asked.crosses.items() if name in found},
    )


def _figures(people: People, scores: Floats) -> dict[str, float]:
    labels = people.test[people.label]
    figures = {"accuracy": accuracy(scores, labels), "auc": auc(scores, labels)}
    if people.sensitive is not None:
        rarest = int(people.labels.argmin())
        found = gaps(scores, labels, people.test[people.sensitive], rarest)
        figures |= {f"{name}_gap": gap for name, gap in found.items()}
    return figures


def _means(runs: list[dict[str, float]]) -> dict[str, Mean]:
    return {name: Mean.of(np.array([run[name] for run in runs])) for name in runs[0]}
