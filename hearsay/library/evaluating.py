"""Methods compared on data whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from analytics.evaluation import Outcome, Score, Snapshot, Truth
from hearsay.library.columns import distinct
from hearsay.running.evaluating import Evaluation
from protocols.errors import ScenarioError

OUTCOMES = pa.schema(
    [
        ("method", pa.string()),
        ("terms", pa.string()),
        ("eps", pa.float64()),
        ("eps_1", pa.float64()),
        ("reveals", pa.float64()),
        ("correction", pa.string()),
        ("mse", pa.float64()),
        ("mse_error", pa.float64()),
        ("expected_mse", pa.float64()),
        ("infeasible", pa.string()),
    ]
)


def evaluate(
    values: Mapping[str, ArrayLike],
    eps: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    methods: Sequence[str] = ("longitudinal",),
    *,
    alpha: float = 0.5,
    published: bool = False,
    runs: int = 20,
    seed: int = 0,
    one_in: int = 1,
) -> pa.Table:
    """Compare methods on a population: `values` has each attribute's true values, one per person.

    Longitudinal methods use `eps` as eps_inf, and alpha times it as eps_1. `methods` are longitudinal, one-shot or all;
    solutions, mechanisms or full names such as smp[l-grr]. `published` adds the papers' variants, where they differ.
    With `one_in`, devices of one-shot methods answer in one of so many periods.

    One row for each method, budget and correction of the raw estimate: `mse` is MSE_avg over `runs` with other noise,
    `mse_error` its standard error, `expected_mse` what the formula predicts for raw, and `reveals` the exact loss of
    one report. A method that cannot keep to a budget has one row, with the reason in `infeasible`.
    """
    comparison = Evaluation(methods, eps, alpha, published=published, runs=runs, seed=seed, one_in=one_in)
    outcomes = comparison.run(_truth(values))
    return pa.Table.from_pylist([row for outcome in outcomes for row in _rows(outcome)], schema=OUTCOMES)


def _truth(values: Mapping[str, ArrayLike]) -> Truth:
    encoded = {name: distinct(column) for name, column in values.items()}
    people = {which.shape for _, which in encoded.values()}
    if len(people) != 1 or len(min(people)) != 1:
        raise ScenarioError("the attributes do not have one value per person", "give each the same number of values")
    for name, (named, _) in encoded.items():
        if len(named) < 2:
            raise ScenarioError(
                f"attribute {name!r} has {len(named)} different value(s)", "leave it out: there is nothing to estimate"
            )
    ((count,),) = people
    places = {name: which for name, (_, which) in encoded.items()}
    everybody = Snapshot(0, np.arange(count, dtype=np.uint64), places)
    return Truth({name: len(named) for name, (named, _) in encoded.items()}, [everybody])


def _rows(outcome: Outcome) -> list[dict[str, Any]]:
    about = {"method": outcome.method.name, "terms": outcome.method.terms, "eps": outcome.eps}
    if not isinstance(outcome, Score):
        return [{**about, "infeasible": outcome.reason}]
    about |= {
        "eps_1": outcome.eps_1,
        "reveals": outcome.guarantees.per_report.whole,
        "expected_mse": outcome.expected,
    }
    return [
        {
            **about,
            "correction": correction,
            "mse": mean.value,
            "mse_error": mean.error if isfinite(mean.error) else None,
        }
        for correction, mean in outcome.mse.items()
    ]
