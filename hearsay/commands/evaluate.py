"""`hearsay evaluate`: compare methods on a population whose truth is known."""

from __future__ import annotations

from itertools import groupby
from math import inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from hearsay.commands.replay import positions_of
from hearsay.terminal import console

if TYPE_CHECKING:
    from analytics.evaluation import Outcome, Score
    from hearsay.learning.labelled import LearningEvaluation
    from pages.events import Event


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _budgets(text: str) -> list[float]:
    """Numbers separated by commas; ln3 is the natural logarithm of 3, as in the papers' budgets."""
    try:
        budgets = [log(float(word[2:])) if word.startswith("ln") else float(word) for word in _words(text)]
    except ValueError:
        budgets = []
    if not budgets or not all(0 < budget < inf for budget in budgets):
        raise typer.BadParameter(f"{text!r}: give budgets above 0, such as 0.5,1,2 or ln2,ln3", param_hint="--eps")
    return budgets


def evaluate(
    scenario_name: Annotated[
        str | None,
        typer.Option(
            "--scenario",
            help="telemetry, virtual-humans, commuters or demand. [virtual-humans; with --places commuters]",
        ),
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="A table with one row per person, instead of a scenario.")] = None,
    places: Annotated[
        Path | None, typer.Option(help="A survey file: its places on a grid are asked, and errors are also in metres.")
    ] = None,
    position: Annotated[
        list[str] | None, typer.Option(help="With --places and --csv: lat,lon=attribute, the columns of positions.")
    ] = None,
    metres: Annotated[
        bool, typer.Option("--metres", help="The columns of --position are metres east and north, as the grid's.")
    ] = False,
    attributes: Annotated[str, typer.Option(help="Only these attributes (or columns), separated by commas.")] = "",
    label: Annotated[
        str | None,
        typer.Option(help="With --csv: measure instead what a classifier of this column learns."),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="With --label: show the gaps between groups of this column.")
    ] = None,
    bins: Annotated[
        int, typer.Option(help="With --label: numbers with more values are cut into so many.", min=2, max=1000)
    ] = 8,
    test: Annotated[
        float, typer.Option(help="With --label: the share of people who do not answer, but are tried on.")
    ] = 0.3,
    crosses: Annotated[
        str, typer.Option(help="Also ask pairs of these, as in age*area, separated by commas; only smp can.")
    ] = "",
    devices: Annotated[int | None, typer.Option(help="Number of devices of the scenario.", min=1)] = None,
    periods: Annotated[int | None, typer.Option(help="Number of periods. [1; with --once all]", min=1)] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take all people of all periods as one period, each with their first values.")
    ] = False,
    eps: Annotated[
        str, typer.Option(help="Budgets separated by commas (eps_inf; eps of one-shot methods); ln3 is ln(3).")
    ] = "0.5,1,2,4",
    alpha: Annotated[float, typer.Option(help="eps_1 is alpha times eps_inf; between 0 and 1.")] = 0.5,
    methods: Annotated[
        str, typer.Option(help="longitudinal, one-shot, all; or solutions, mechanisms, names as in smp[l-grr].")
    ] = "longitudinal",
    one_in: Annotated[
        int, typer.Option(help="One-shot methods: a device answers in one of so many periods.", min=1, max=10_000)
    ] = 1,
    guarantee: Annotated[
        Literal["tuple", "attribute"], typer.Option(help="The guarantee of RS+FD and RS+RFD, except as published.")
    ] = "tuple",
    published: Annotated[
        bool, typer.Option("--published", help="Add the variants of the papers, where they differ.")
    ] = False,
    prior_eps: Annotated[
        float, typer.Option(help="RS+RFD: central budget of the noisy census that fakes are drawn from.", min=1e-6)
    ] = 0.1,
    corrections: Annotated[
        str, typer.Option(help="Corrections of raw estimates: raw, norm-sub, clip, likeliest, ibu.")
    ] = "raw,norm-sub,clip",
    runs: Annotated[int, typer.Option(help="Runs of each method, each with other noise.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the population and of the noise.", min=0)] = 0,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained page with charts to this file.")] = None,
    as_json: console.AsJson = False,
) -> None:
    """Compare methods where the truth is known: MSE_avg and RMSE per method and budget, as the papers measure them.

    With --places: also how many metres the estimated map is off, and the error of areas. Budgets are then for the
    distance that the survey's budgets are for; those of other mechanisms hold between any two cells.

    With --label: accuracy, AUC and gaps of classifiers learnt from crosses with the label and from synthetic records.

    Nothing is sent or stored: the code of the devices answers in memory.

    Example: hearsay evaluate --once --published --eps 1,2 --html evaluation.html
    """
    from analytics.evaluation import CORRECTIONS
    from hearsay.learning.labelled import LearningEvaluation
    from hearsay.running.evaluating import Evaluation
    from hearsay.running.evaluation_truth import (
        from_csv,
        from_positions,
        from_scenario,
        on_grids,
        only_places,
        with_crosses,
    )
    from hearsay.running.simulating import populate
    from hearsay.survey_files import read_survey
    from producers.scenarios import scenario

    name = scenario_name or ("virtual-humans" if places is None else "commuters")
    if not 0 < alpha < 1:
        raise typer.BadParameter(f"{alpha:g} is not between 0 and 1", param_hint="--alpha")
    if (position or metres) and (places is None or csv is None):
        raise typer.BadParameter("--position and --metres belong to --places with --csv")
    if places is not None and (label is not None or crosses):
        raise typer.BadParameter("--places goes with neither --label nor --crosses")
    if label is None and sensitive is not None:
        raise typer.BadParameter("--sensitive belongs to --label")
    if label is not None:
        if csv is None or crosses or methods not in ("longitudinal", "one-shot") or not 0 < test < 1:
            raise typer.BadParameter(
                "--label takes a table (--csv) and --methods longitudinal or one-shot, with --test between 0 and 1; it "
                "crosses each column with the label by itself"
            )
        rounds = alpha if methods == "longitudinal" else None
        learning = LearningEvaluation(label, sensitive, _budgets(eps), rounds, bins, test, runs, seed)
        _learn(learning, csv, _words(attributes), html, as_json)
        return
    for word in _words(corrections):
        if word not in CORRECTIONS:
            raise typer.BadParameter(f"{word!r} is not one of {', '.join(CORRECTIONS)}", param_hint="--corrections")
    comparison = Evaluation(
        _words(methods), _budgets(eps), alpha, guarantee, published, prior_eps, _words(corrections), runs, seed, one_in
    )
    with console.progress("preparing") as step:
        lived = None if once and periods is None else periods or 1
        if places is not None:
            asked = only_places(read_survey(places), _words(attributes))
            if csv is not None:
                truth = from_positions(csv, asked, positions_of(position), metres, step)
            else:
                population = populate(asked, name, devices, lived, seed)
                truth = from_scenario(population, [attribute.name for attribute in asked.attributes], once, step)
            truth = on_grids(truth, asked)
        elif csv is not None:
            truth = from_csv(csv, _words(attributes), step)
        else:
            population = scenario(name, devices=devices, periods=lived, seed=seed)
            truth = from_scenario(population, _words(attributes), once, step)
        truth = with_crosses(truth, _words(crosses))
        outcomes = comparison.run(truth, step)
    source = str(csv) if csv is not None else name
    settings = {"source": source, "once": once, "alpha": alpha, "runs": runs, "seed": seed, "prior_eps": prior_eps}
    facts = {**settings, "attributes": dict(truth.sizes), "people": truth.people.tolist()}
    facts["within"] = {attribute: place.radius for attribute, place in truth.places.items()}
    if as_json:
        console.print_json({**facts, "outcomes": [outcome.record() for outcome in outcomes]})
    else:
        _show(facts, outcomes)
    if html is not None:  # last: the figures are shown even if the file cannot be written
        from pages.documents import evaluation_event

        _write_page(html, f"Evaluation on {source}", evaluation_event(facts, outcomes), as_json)


def _learn(evaluation: LearningEvaluation, csv: Path, columns: list[str], html: Path | None, as_json: bool) -> None:
    from hearsay.learning.showing import learning_table

    with console.progress("preparing") as step:
        facts, learnt = evaluation.run(csv, columns, step)
    if as_json:
        console.print_json({**facts, "learnt": [one.record() for one in learnt]})
    else:
        console.out.print(learning_table(facts, learnt))
    if html is not None:
        from pages.documents import learning_event

        _write_page(html, f"Learning from {csv}", learning_event(facts, learnt), as_json)


def _write_page(html: Path, title: str, event: Event, as_json: bool) -> None:
    from pages.static import static_page

    html.write_text(static_page(title, [event]), encoding="utf-8")
    if not as_json:
        console.out.print(f"Charts: {html}", soft_wrap=True, markup=False)


def _show(facts: dict[str, Any], outcomes: list[Outcome]) -> None:
    people, values = facts["people"], sum(facts["attributes"].values())
    console.out.print(
        f"MSE_avg on {escape(facts['source'])}: {len(facts['attributes'])} attributes with {values} values, "
        f"{len(people)} period(s), {sum(people):,} reports, {facts['runs']} run(s)"
    )
    for eps, group in groupby(outcomes, key=lambda outcome: outcome.eps):
        _show_budget(eps, facts["alpha"], list(group))
    if facts["within"]:
        reach = ", ".join(f"{radius:g} m ({escape(attribute)})" for attribute, radius in facts["within"].items())
        console.out.print(
            f"\nBudgets of mechanisms for places are for two places {reach} apart, and those of others for any two. "
            "Metres: how far people must be moved, on average, to be where they are. Areas: the error of a share.",
        )


def _show_budget(eps: float, alpha: float, outcomes: list[Outcome]) -> None:
    from analytics.evaluation import Score

    scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
    budgets = {True: f"eps_inf = {eps:g}, eps_1 = {alpha * eps:g}", False: f"one-shot: eps = {eps:g}"}
    title = "; ".join(
        budgets[kind] for kind in sorted({outcome.method.longitudinal for outcome in outcomes}, reverse=True)
    )
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("method", "terms", "reveals"):
        table.add_column(heading, no_wrap=True)
    for heading in _figures(scores[0]) if scores else ():
        table.add_column(heading, justify="right")
    for outcome in outcomes:
        if isinstance(outcome, Score):
            revealed = f"{outcome.guarantees.per_report.whole:.2f}"
            table.add_row(escape(outcome.method.name), outcome.method.terms, revealed, *_figures(outcome).values())
        else:
            table.add_row(escape(outcome.method.name), outcome.method.terms, "[dim]infeasible[/]")
    console.out.print()
    console.out.print(table)
    for outcome in outcomes:
        if not isinstance(outcome, Score):
            console.out.print(f"[dim]{escape(outcome.method.name)}: {escape(outcome.reason)}[/]", soft_wrap=True)


def _figures(score: Score) -> dict[str, str]:
    """What is shown of a score, by heading. Of places, errors in metres instead of those of single corrections."""
    figures = {name: f"{mean.value:.2e}" for name, mean in score.mse.items()}
    figures[score.headline] = f"[bold]{figures[score.headline]}[/]"
    typical = {"RMSE": f"{score.rmse(score.headline):.4f}"}
    if not score.places:
        return {**figures, "theory": f"{score.expected:.2e}", **typical}
    for name, errors in score.places.items():
        where = f"{escape(name)}: " if len(score.places) > 1 else ""
        typical[f"{where}metres"] = f"{errors.metres.value:,.0f}"
        typical[f"{where}areas"] = "-" if errors.areas is None else f"{errors.areas.value:.4f}"
    return typical
