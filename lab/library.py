"""What `import hearsay` offers of the lab: methods compared, audits, synthetic records, and virtual people."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from hearsay.reports.files import chosen, latest, mobility_of, narrowed, open_results
from hearsay.terminal.console import no_step
from lab.attacks.reidentify import SURVEYS, TARGETS
from lab.attacks.report import ATTACKS, Attack, Attacker, AuditReport
from lab.auditing.auditing import Auditing
from lab.auditing.devices import STEADY
from lab.evaluation.measuring import CORRECTIONS, USUAL, Outcome
from lab.evaluation.measuring import evaluate as evaluate_methods
from lab.evaluation.methods import choose
from lab.learning.comparing import compare
from lab.learning.synthesis import synthetic_records
from lab.people.drawing import draw_people
from lab.people.published import published_aggregates
from lab.people.tables import table_aggregates
from lab.populations import labelled, of_table, only_places, with_crosses
from producers.files import TableSource, read_table
from protocols.errors import ResultsError, ScenarioError, SettingsError
from protocols.scheme import Scheme
from protocols.survey import Survey
from stream_app.finals import Final
from views.past import history_of

MOST_ROWS = 10_000_000
TEXTS = ("method", "terms", "correction", "infeasible")
FIGURES = ("mse", "mse_error", "expected_mse", "metres_off")
COLUMNS = ("method", "terms", "eps", "eps_1", "reveals", "correction", *FIGURES, "infeasible")
OUTCOMES = pa.schema([(name, pa.string() if name in TEXTS else pa.float64()) for name in COLUMNS])


def evaluate(
    values: TableSource,
    eps: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    methods: Sequence[str] = ("longitudinal",),
    *,
    label: str | None = None,
    sensitive: str | None = None,
    bins: int = 8,
    test: float = 0.3,
    crosses: Sequence[str] = (),
    places: Survey | None = None,
    positions: Mapping[str, tuple[str, str]] | None = None,
    metres: bool = False,
    corrections: Sequence[str] = USUAL,
    alpha: float = 0.5,
    published: bool = False,
    runs: int = 20,
    seed: int = 0,
    one_in: int = 1,
) -> pa.Table:
    """Compare methods on a population: `values` is a table with one row per person, or columns by name.

    Longitudinal methods use `eps` as eps_inf, and alpha times it as eps_1. `methods` are longitudinal, one-shot or all;
    solutions, mechanisms or full names such as smp[l-grr]. `published` adds the papers' variants, where they differ.
    With `one_in`, devices of one-shot methods answer in one of so many periods. `crosses` are also asked, named like
    age*area. With `places`, the places of that survey are asked, from the two columns of `positions` or from the names
    of cells, and `metres_off` is how far people must be moved to be where they are.

    One row for each method, budget and correction of the raw estimate (raw, norm-sub, clip, likeliest, ibu): `mse` is
    MSE_avg over `runs` with other noise, `mse_error` its standard error, `expected_mse` what the formula predicts for
    raw, and `reveals` the exact loss of one report. A method that cannot keep to a budget has one row, with the reason
    in `infeasible`.

    With `label`, it is measured instead what classifiers of that column learn, from crosses with it and from synthetic
    records: the share `test` of the people does not answer, but is tried on; numbers are cut into `bins`; `sensitive`
    is a column between whose groups gaps are shown. One row for each way and budget, with `accuracy` and `auc`.
    """
    if label is not None:
        rounds = alpha if "one-shot" not in methods else None
        people, _ = labelled(values, (), label, sensitive, bins, test, seed)
        learnt = compare(people, eps, alpha=rounds, runs=runs, seed=seed)
        return pa.Table.from_pylist([_learnt(one) for one in learnt])
    if unknown := set(corrections) - set(CORRECTIONS):
        raise ScenarioError(f"{min(unknown)!r} is no correction", f"choose of {', '.join(CORRECTIONS)}")
    truth = of_table(values, (), places and only_places(places, ()), positions, metres)
    compared = choose(methods, bool(truth.places), one_in=one_in, published=published)
    asked = with_crosses(truth, crosses)
    outcomes = evaluate_methods(asked, compared, eps, alpha=alpha, runs=runs, seed=seed, corrections=corrections)
    return pa.Table.from_pylist([row for outcome in outcomes for row in _rows(outcome)], schema=OUTCOMES)


def _rows(outcome: Outcome) -> list[dict[str, Any]]:
    """The columns of the table are among what a record has."""
    record = outcome.record()
    if "infeasible" in record:
        return [record]
    record["reveals"] = record["per_report"]["whole"]
    off = [errors["metres"]["value"] for errors in record["places"].values()]
    record["metres_off"] = sum(off) / len(off) if off else None
    return [
        {**record, "correction": name, "mse": mean["value"], "mse_error": mean["error"]}
        for name, mean in record["mse"].items()
    ]


def _learnt(learnt: Mapping[str, Any]) -> dict[str, Any]:
    """One row: each figure, and its standard error."""
    row: dict[str, Any] = {}
    for name, figure in learnt.items():
        both = isinstance(figure, dict)
        row |= {name: figure["value"], f"{name}_error": figure["error"]} if both else {name: figure}
    return row


def audit(
    survey: Survey,
    *,
    devices: int | None = None,
    periods: int | None = None,
    scenario: str = STEADY,
    values: TableSource | None = None,
    background: TableSource | None = None,
    crowd: int | None = None,
    only: Sequence[Attack] = ATTACKS,
    attacker: Attacker = "best",
    prior: str | None = None,
    alpha: float = 0.01,
    seed: int = 0,
    targets: int = TARGETS,
    surveys: int = SURVEYS,
) -> AuditReport:
    """Attack a survey as well as anybody can: what `hearsay audit` shows, as a model.

    All figures are computed. With `devices`, or with `values` (a table with one row per person), the attacks are also
    carried out, on devices that the audit makes itself, which report in `periods` periods (by default 10, or as many as
    `only` needs). People are looked for in the table `background`, by default in their own: `targets` of them, by their
    answers to so many `surveys`. `crowd` is the number of devices that hide one. `prior` is what attackers know of the
    shares of values: even, exact (the default with `values`), published, or the name of a file.
    """
    prior = prior or ("even" if values is None else "exact")
    auditing = Auditing(survey, crowd, only, attacker, prior, alpha, seed, "", targets, surveys)
    measured = devices is not None or values is not None
    return auditing.run(values, scenario if measured else None, devices, periods, background, no_step)


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


def people(
    source: str | Path | None = None,
    *,
    kafka: str | None = None,
    survey: str | None = None,
    periods: tuple[int, int] | None = None,
    lasting: Sequence[str] = (),
    stay: tuple[str, float] | None = None,
    people: int | None = None,
    seed: int = 0,
) -> pa.Table:
    """Draw virtual people from what was published, or from a CSV file of aggregates, as `hearsay people` does.

    `source` is a data directory or such a file. One row for each person and day, with the lasting attributes and those
    of the day. The same aggregates and the same `seed` give the same people. The table's metadata say what they follow:
    `about` in lines for people, `hearsay` as JSON.
    """
    path = None if source is None else Path(source)
    if path is not None and path.is_file():
        given = table_aggregates(read_table(path), path.name, lasting, stay, seed)
        return draw_people(given, people, seed)
    with open_results(survey, path, kafka) as (results, _):
        published = chosen(results, survey)
        report, finals = mobility_of(results, published.id), results.finals(published.id)
    first, last = periods or (0, max(key.period or 0 for key in finals))
    kept = [Final.decode(final) for key, final in finals.items() if first <= (key.period or 0) <= last]
    if [final.period for final in kept] != list(range(first, last + 1)):
        raise ResultsError(
            f"not all of periods {first} to {last} of survey {published.id!r} are published",
            f"published: {', '.join(str(key.period) for key in finals)}",
        )
    history = None if published.releases_windows else history_of(Scheme(published), kept)
    covered = range(first, last + 1)
    return draw_people(published_aggregates(published, report, history, covered, lasting, stay, seed), people, seed)
