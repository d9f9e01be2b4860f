"""What `import hearsay` offers of the lab: methods compared on data whose truth is known, and synthetic records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import ArrayLike

from hearsay.library.answering import distinct
from hearsay.reports.files import chosen, latest, mobility_of, narrowed, open_results
from lab.evaluation.measuring import evaluate as evaluate_methods
from lab.evaluation.methods import choose
from lab.evaluation.scores import Outcome
from lab.evaluation.truth import Truth, one_period
from lab.learning.synthesis import synthetic_records
from protocols.errors import ScenarioError, SettingsError

MOST_ROWS = 10_000_000
TEXTS = ("method", "terms", "correction", "infeasible")
COLUMNS = ("method", "terms", "eps", "eps_1", "reveals", "correction", "mse", "mse_error", "expected_mse", "infeasible")
OUTCOMES = pa.schema([(name, pa.string() if name in TEXTS else pa.float64()) for name in COLUMNS])


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
    compared = choose(methods, one_in=one_in, published=published)
    outcomes = evaluate_methods(_truth(values), compared, eps, alpha=alpha, runs=runs, seed=seed)
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
    sizes = {name: len(named) for name, (named, _) in encoded.items()}
    return one_period(sizes, {name: which for name, (_, which) in encoded.items()})


def _rows(outcome: Outcome) -> list[dict[str, Any]]:
    """The columns of the table are among what a record has."""
    record = outcome.record()
    if "infeasible" in record:
        return [record]
    reveals = record["per_report"]["whole"]
    return [
        {**record, "reveals": reveals, "correction": name, "mse": mean["value"], "mse_error": mean["error"]}
        for name, mean in record["mse"].items()
    ]


def synthesize(
    data: str | Path | None = None,
    *,
    kafka: str | None = None,
    survey: str | None = None,
    rows: int = 10_000,
    window: tuple[int, int] | None = None,
    seed: int = 0,
) -> pa.Table:
    """Draw records that follow what was published, in a data directory or on the Kafka cluster at `kafka` (HOST:PORT).

    One row for each record and one column for each attribute, as `hearsay synthesize` writes them. `window` are the
    first and the last period of what is followed: `(3, 3)` is period 3, and None the last final. `survey` is the
    survey's id, which may be left out if there is only one. The same results and the same `seed` give the same records.

    Only pairs that a cross has asked are followed; all others are independent, or joined by those. The table's metadata
    says so: `about` in lines for people, `hearsay` as JSON with the total variation of records and every measured pair.
    It costs no budget, and what is suppressed stays suppressed.
    """
    if not 1 <= rows <= MOST_ROWS:
        raise SettingsError(f"{rows} rows", f"ask for 1 to {MOST_ROWS:,}")
    with open_results(survey, None if data is None else Path(data), kafka) as (results, _):
        report = mobility_of(results, chosen(results, survey).id)
    return synthetic_records(report, latest(report if window is None else narrowed(report, *window)), rows, seed)
