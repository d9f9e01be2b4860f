"""What a classifier learns from a survey of crosses, where the truth is known (docs/learning.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.estimation import estimate
from lab.evaluation.measuring import Mean, Progress, plain, respondents, supports
from lab.evaluation.methods import made_up
from lab.evaluation.truth import crossing, one_period
from lab.learning.classifier import auc, gaps, naive_bayes
from lab.learning.model import Measured, Pair, Records, Shares, counted, draw_records, fit
from protocols.arrays import Counts, Floats
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


def compare(
    people: People,
    budgets: Sequence[float],
    *,
    alpha: float | None = 0.5,
    runs: int = 10,
    seed: int = 0,
    progress: Progress = lambda done, total, what: None,
) -> list[dict[str, Any]]:
    """Every way to learn, at every budget. `alpha`: eps_1 is alpha times eps_inf; None: one report, without a memo.

    Each has its `source`, its budget, the exact loss of one report, and how good the classifier is: of each figure the
    mean over runs and its standard error.
    """
    pairs = [(name, people.label) for name in people.features]
    largest = np.tile(np.log(np.maximum(people.labels, 0.5)), (len(people.test[people.label]), 1))
    best = naive_bayes(counted(people.sizes, people.train, pairs), people.label).scores(people.test)
    found = [_learnt(MAJORITY, None, None, [_figures(people, largest)])]
    found += [_learnt(TRUE, None, None, [_figures(people, best)])]
    for at, eps in enumerate(budgets):
        scheme = Scheme(survey(people, eps, alpha))
        crosses, synthetic, reveals = [], [], scheme.guarantees.per_report.whole
        for run, respondent in enumerate(respondents(scheme, runs, seed)):
            progress(at * runs + run, len(budgets) * runs, f"eps {eps:g}")
            measured = _collected(people, pairs, respondent)
            crosses.append(_figures(people, naive_bayes(measured, people.label).scores(people.test)))
            records = draw_records(fit(measured), len(people.train[people.label]), run)
            drawn = naive_bayes(counted(people.sizes, records, pairs), people.label)
            synthetic.append(_figures(people, drawn.scores(people.test)))
        found += [_learnt(CROSSES, eps, reveals, crosses), _learnt(SYNTHETIC, eps, reveals, synthetic)]
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
    figures = {"accuracy": float((scores.argmax(axis=1) == labels).mean()), "auc": auc(scores, labels)}
    if people.sensitive is not None:
        rarest = int(people.labels.argmin())
        found = gaps(scores, labels, people.test[people.sensitive], rarest)
        figures |= {f"{name}_gap": gap for name, gap in found.items()}
    return figures


def _learnt(source: str, eps: float | None, reveals: float | None, runs: list[dict[str, float]]) -> dict[str, Any]:
    means = {name: Mean.of(np.array([run[name] for run in runs])) for name in runs[0]}
    return {"source": source, "eps": eps, "reveals": reveals, **plain(means)}
