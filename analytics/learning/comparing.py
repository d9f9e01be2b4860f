"""What a classifier learns from a survey of crosses, where the truth is known.

Some people answer a survey that asks each attribute together with the label, through the devices' own code. A naive
Bayes classifier is made from the published tables, and another from synthetic records; both are tried on other people,
beside one that sees true records and the largest class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from analytics.estimation.estimates import estimate
from analytics.estimation.votes import Floats
from analytics.evaluation.measuring import mean_of_runs, supports
from analytics.evaluation.scores import Mean
from analytics.evaluation.truth import Snapshot, Truth, crossing
from analytics.learning.naive_bayes import naive_bayes
from analytics.learning.records import distances, draw_records
from analytics.learning.scores import accuracy, auc, gaps
from analytics.learning.tables import Measured, Pair, Records, Shares, counted
from analytics.learning.tree import fit
from protocols.errors import SurveyError
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import MIN_SHARE, Survey
from protocols.survey_text import Document, explain

Progress = Callable[[int, int, str], None]
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
    def positive(self) -> int:
        """The rarest label among those who answer."""
        return int(np.bincount(self.train[self.label], minlength=self.sizes[self.label]).argmin())


@dataclass(frozen=True)
class Learnt:
    """How good one classifier is: means over runs, and their standard errors."""

    source: str
    eps: float | None
    reveals: float | None
    """The exact loss of one report."""
    figures: dict[str, Mean]

    def record(self) -> dict[str, Any]:
        """All figures as plain data; None where one is not known."""
        figures = {
            name: {"value": _finite(mean.value), "error": _finite(mean.error)} for name, mean in self.figures.items()
        }
        return {"source": self.source, "eps": self.eps, "reveals": self.reveals, **figures}


def split(people: int, share: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
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
    keyring: Keyring,
    *,
    alpha: float | None = 0.5,
    runs: int = 10,
    progress: Progress = lambda done, total, what: None,
) -> list[Learnt]:
    """Every way to learn, at every budget. `alpha`: eps_1 is alpha times eps_inf; None: one report, without a memo."""
    label, pairs = people.test[people.label], [(name, people.label) for name in people.features]
    most = np.bincount(people.train[people.label], minlength=people.sizes[people.label])
    largest = np.tile(np.log(np.maximum(most, 0.5)), (len(label), 1))
    truth = naive_bayes(counted(people.sizes, people.train, pairs), people.label)
    found = [
        Learnt(MAJORITY, None, None, _means([_figures(people, largest)])),
        Learnt(TRUE, None, None, _means([_figures(people, truth.scores(people.test))])),
    ]
    for at, eps in enumerate(budgets):
        scheme = Scheme(survey(people, eps, alpha))
        reveals = scheme.guarantees.per_report.whole
        learnt: dict[str, list[dict[str, float]]] = {CROSSES: [], SYNTHETIC: []}
        for run in range(runs):
            progress(at * runs + run, len(budgets) * runs, f"eps {eps:g}")
            respondent = Respondent(scheme, Keyring(keyring.key(("run", str(run)))))
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
    attributes = [
        {
            "name": names[name],
            "values": [str(value) for value in range(k)],
            "share": None if name == people.label else MIN_SHARE,
        }
        for name, k in people.sizes.items()
    ]
    crosses = [{"of": [names[name], names[people.label]]} for name in people.features]
    when = {"id": "learning", "start": "2026-01-01T00:00:00Z", "period": "1d"}
    try:
        return Survey.model_validate({**when, **budgets, "attributes": attributes, "crosses": crosses})
    except ValidationError as error:
        raise SurveyError(explain(error, Document({})).replace("\n", "; ")) from None


def _learn(
    people: People, pairs: list[Pair], respondent: Respondent, seed: int
) -> Iterator[tuple[str, dict[str, float]]]:
    measured = _collected(people, pairs, respondent)
    model = fit(measured)
    own = naive_bayes(measured, people.label, model)
    yield CROSSES, _figures(people, own.scores(people.test)) | {"dropped": float(len(own.dropped))}
    records = draw_records(model, len(people.train[people.label]), seed)
    from_records = naive_bayes(counted(people.sizes, records, pairs), people.label)
    far = distances(records, counted(people.sizes, people.train, pairs), model.tables.ones)
    variation = {"variation": float(np.mean([distance.records for distance in far.values()]))}
    yield SYNTHETIC, _figures(people, from_records.scores(people.test)) | variation


def _collected(people: People, pairs: list[Pair], respondent: Respondent) -> Measured:
    """What the reports of those who answer say: estimates with variances."""
    everybody = Snapshot(0, np.arange(len(people.train[people.label]), dtype=np.uint64), people.train)
    asked = crossing(Truth(people.sizes, [everybody]), pairs)
    questions = zip(asked.sizes, respondent.scheme.questions, strict=True)
    counts = supports(respondent, asked.moments[0], list(asked.sizes))
    found = {}
    for (name, question), (supported, n) in zip(questions, counts, strict=True):
        if n > 0:
            estimates = estimate(supported, n, question.channel)
            found[name] = Shares(estimates.value, estimates.error**2)
    return Measured(
        people.sizes,
        {name: found[name] for name in people.sizes if name in found},
        {pair: _table(found[name], people.sizes, pair) for name, pair in asked.crosses.items() if name in found},
    )


def _table(shares: Shares, sizes: dict[str, int], pair: Pair) -> Shares:
    shape = sizes[pair[0]], sizes[pair[1]]
    return Shares(shares.value.reshape(shape), shares.variance.reshape(shape))


def _figures(people: People, scores: Floats) -> dict[str, float]:
    labels = people.test[people.label]
    figures = {"accuracy": accuracy(scores, labels), "auc": auc(scores, labels)}
    if people.sensitive is not None:
        found = gaps(scores, labels, people.test[people.sensitive], people.positive)
        figures |= {f"{name}_gap": gap for name, gap in found.items()}
    return figures


def _means(runs: list[dict[str, float]]) -> dict[str, Mean]:
    return {name: mean_of_runs(np.array([run[name] for run in runs])) for name in runs[0]}


def _finite(figure: float) -> float | None:
    return figure if isfinite(figure) else None
