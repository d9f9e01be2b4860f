"""`hearsay evaluate`: compare methods on a population whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from hearsay.commands.replay import positions_of
from hearsay.terminal import console

if TYPE_CHECKING:
    from lab.evaluation.measuring import Outcome, Score


def _budgets(text: str) -> list[float]:
    """Numbers separated by commas; ln3 is the natural logarithm of 3, as in the papers' budgets."""
    try:
        budgets = [log(float(word[2:])) if word.startswith("ln") else float(word) for word in console.words(text)]
    except ValueError:
        budgets = []
    if not budgets or not all(0 < budget < inf for budget in budgets):
        raise typer.BadParameter(f"{text!r}: give budgets above 0, such as 0.5,1,2 or ln2,ln3", param_hint="--eps")
    return budgets


def evaluate(
    scenario_name: Annotated[str | None, typer.Option("--scenario")] = None,
    csv: Path | None = None,
    places: Path | None = None,
    sets: Path | None = None,
    position: list[str] | None = None,
    metres: Annotated[bool, typer.Option("--metres")] = False,
    attributes: str = "",
    label: str | None = None,
    sensitive: str | None = None,
    bins: Annotated[int, typer.Option(min=2, max=1000)] = 8,
    test: float = 0.3,
    crosses: str = "",
    devices: Annotated[int | None, typer.Option(min=1)] = None,
    periods: Annotated[int | None, typer.Option(min=1)] = None,
    once: Annotated[bool, typer.Option("--once")] = False,
    eps: str = "0.5,1,2,4",
    alpha: float = 0.5,
    methods: str = "longitudinal",
    one_in: Annotated[int, typer.Option(min=1, max=10_000)] = 1,
    guarantee: Literal["tuple", "attribute"] = "tuple",
    published: Annotated[bool, typer.Option("--published")] = False,
    prior_eps: Annotated[float, typer.Option(min=1e-6)] = 0.1,
    corrections: str = "raw,norm-sub,clip",
    runs: Annotated[int, typer.Option(min=1)] = 20,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    html: Path | None = None,
    as_json: console.AsJson = False,
) -> None:
    """Compare methods where the truth is known: MSE_avg and RMSE per method and budget, as the papers measure them.

    With --places: also how many metres the estimated map is off, and the error of areas. Budgets are then for the
    distance that the survey's budgets are for; those of other mechanisms hold between any two cells.

    With --label: accuracy, AUC and gaps of classifiers learnt from crosses with the label and from synthetic records.

    Nothing is sent or stored: the code of the devices answers in memory.

    Example: hearsay evaluate --once --published --eps 1,2 --html evaluation.html
    """
    with console.progress("starting"):  # to import these takes seconds
        from hearsay.running.simulating import populate
        from hearsay.survey_files import read_survey
        from lab.documents import evaluation_event, learning_event, show
        from lab.evaluation.measuring import CORRECTIONS, compare_sets
        from lab.evaluation.measuring import evaluate as evaluate_methods
        from lab.evaluation.methods import choose
        from lab.evaluation.places import radius
        from lab.learning.comparing import compare
        from lab.populations import labelled, of_scenario, of_table, only_places, with_crosses
        from producers.scenarios import scenario
        from producers.simulation import check_scenario

    name = scenario_name or ("virtual-humans" if places is None else "commuters")
    asked, budgets, words = console.words(attributes), _budgets(eps), console.words(corrections)
    if not 0 < alpha < 1:
        raise typer.BadParameter(f"{alpha:g} is not between 0 and 1", param_hint="--alpha")
    if (position or metres) and (places is None or csv is None):
        raise typer.BadParameter("--position and --metres belong to --places with --csv")
    if places is not None and (label is not None or crosses):
        raise typer.BadParameter("--places goes with neither --label nor --crosses")
    rounds = alpha if methods == "longitudinal" else None
    if sets is not None:
        survey, people_of = read_survey(sets), scenario_name or "telemetry"
        several = len(survey.attributes) == 1 and survey.attributes[0].several is not None
        if not several or methods not in ("longitudinal", "one-shot"):
            raise typer.BadParameter(
                "--sets takes a survey with one attribute, which has several, and --methods longitudinal or one-shot"
            )
        with console.progress("preparing") as step:
            values = populate(survey, people_of, devices, 1, seed).presences(0).values[survey.attributes[0].name]
            scores = compare_sets(survey, values, budgets, alpha=rounds, runs=runs, seed=seed, progress=step)
        facts = {"survey": survey.id, "people": len(values), "alpha": rounds, "runs": runs, "seed": seed}
        show({**facts, "scores": scores}, lambda: print_sets(scores, len(values)), as_json)
        return
    if label is None and sensitive is not None:
        raise typer.BadParameter("--sensitive belongs to --label")
    if label is not None:
        if csv is None or crosses or methods not in ("longitudinal", "one-shot") or not 0 < test < 1:
            raise typer.BadParameter(
                "--label takes a table (--csv) and --methods longitudinal or one-shot, with --test between 0 and 1; it "
                "crosses each column with the label by itself"
            )
        with console.progress("preparing") as step:
            people, facts = labelled(csv, asked, label, sensitive, bins, test, seed)
            learnt = compare(people, budgets, alpha=rounds, runs=runs, seed=seed, progress=step)
        facts |= {"alpha": rounds, "runs": runs, "seed": seed}
        shown, page = {**facts, "learnt": learnt}, learning_event(facts, learnt)
        show(shown, lambda: print_learnt(facts, learnt), as_json, html, f"Learning from {csv}", page)
        return
    for word in words:
        if word not in CORRECTIONS:
            raise typer.BadParameter(f"{word!r} is not one of {', '.join(CORRECTIONS)}", param_hint="--corrections")
    with console.progress("preparing") as step:
        lived = None if once and periods is None else periods or 1
        placed = None if places is None else only_places(read_survey(places), asked)
        if csv is not None:
            truth = of_table(csv, asked, placed, positions_of(position), metres)
        elif placed is not None:
            population = populate(placed, name, devices, lived, seed)
            check_scenario(placed, population)
            truth = of_scenario(population, [attribute.name for attribute in placed.attributes], once, step, placed)
        else:
            truth = of_scenario(scenario(name, devices=devices, periods=lived, seed=seed), asked, once, step)
        truth = with_crosses(truth, console.words(crosses))
        chosen = choose(console.words(methods), bool(truth.places), guarantee, one_in, published)
        settings: dict[str, Any] = {"alpha": alpha, "runs": runs, "seed": seed, "prior_eps": prior_eps}
        outcomes = evaluate_methods(truth, chosen, budgets, corrections=words, progress=step, **settings)
    source = str(csv) if csv is not None else name
    facts = {"source": source, "once": once, **settings, "attributes": dict(truth.sizes)}
    facts |= {"people": truth.people.tolist(), "within": {name: radius(place) for name, place in truth.places.items()}}
    shown, page = {**facts, "outcomes": [one.record() for one in outcomes]}, evaluation_event(facts, outcomes)
    show(shown, lambda: print_scores(facts, outcomes), as_json, html, f"Evaluation on {source}", page)


def print_scores(facts: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
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
            f"\nBudgets of mechanisms for places are for two positions {reach} apart, and those of others for any two. "
            "Metres: how far people must be moved, on average, to be where they are. Areas: the error of a share.",
        )


def print_sets(scores: Sequence[dict[str, Any]], people: int) -> None:
    title = f"RMSE of shares of sets, {people:,} devices, one period"
    headings, left = ("budget", "RMSE", "±", "of a value that nobody has, expected"), ("asked as", "mechanism")
    table = console.table(*left, *headings, left=left, title=title, padding=(0, 2, 0, 0))
    for one in scores:
        figures = (*one["rmse"].values(), one["expected"])
        shown = ("–" if figure is None else f"{figure:.4f}" for figure in figures)
        table.add_row(one["way"], one["mechanism"], f"{one['eps']:g}", *shown)
    console.out.print(table)


def _show_budget(eps: float, alpha: float, outcomes: Sequence[Outcome]) -> None:
    from lab.evaluation.measuring import Infeasible, Score

    scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
    budgets = {True: f"eps_inf = {eps:g}, eps_1 = {alpha * eps:g}", False: f"one-shot: eps = {eps:g}"}
    title = "; ".join(
        budgets[kind] for kind in sorted({outcome.method.longitudinal for outcome in outcomes}, reverse=True)
    )
    named, shown = ("method", "terms", "reveals"), _figures(scores[0]) if scores else ()
    table = console.table(*named, *shown, left=named, title=title, padding=(0, 1, 0, 0))
    for column in table.columns[: len(named)]:
        column.no_wrap = True
    for outcome in outcomes:
        if isinstance(outcome, Score):
            revealed = f"{outcome.per_report.whole:.2f}"
            table.add_row(escape(outcome.method.name), outcome.method.terms, revealed, *_figures(outcome).values())
        else:
            table.add_row(escape(outcome.method.name), outcome.method.terms, "[dim]infeasible[/]")
    console.out.print()
    console.out.print(table)
    for outcome in outcomes:
        if isinstance(outcome, Infeasible):
            console.out.print(f"[dim]{escape(outcome.method.name)}: {escape(outcome.infeasible)}[/]", soft_wrap=True)


def _figures(score: Score) -> dict[str, str]:
    """What is shown of a score, by heading. Of places, errors in metres instead of those of single corrections."""
    figures = {name: f"{mean.value:.2e}" for name, mean in score.mse.items()}
    figures[score.headline] = f"[bold]{figures[score.headline]}[/]"
    typical = {"RMSE": f"{score.rmse[score.headline]:.4f}"}
    if not score.places:
        return {**figures, "theory": f"{score.expected_mse:.2e}", **typical}
    for name, errors in score.places.items():
        where = f"{escape(name)}: " if len(score.places) > 1 else ""
        typical[f"{where}metres"] = f"{errors.metres.value:,.0f}"
        typical[f"{where}areas"] = "-" if errors.areas is None else f"{errors.areas.value:.4f}"
    return typical


def print_learnt(facts: dict[str, Any], learnt: Sequence[dict[str, Any]]) -> None:
    """One row for each way to learn and budget."""
    lines = [
        f"Learning {facts['label']!r} ({facts['labels']} values) on {facts['source']}: {len(facts['attributes'])} "
        f"attributes, {facts['people']:,} people answer, tried on {facts['tried_on']:,} others, {facts['runs']} run(s)"
    ]
    if facts["binned"]:
        lines.append(f"cut at quantiles, as a survey would have to declare: {', '.join(facts['binned'])}")
    if facts["left_out"]:
        lines.append(f"left out, because of one value or too many: {', '.join(facts['left_out'])}")
    shown = [name for name in learnt[0] if name not in ("source", "eps", "reveals")]
    headings = ["AUC" if name == "auc" else name.replace("_gap", "\ngap") for name in shown]
    budget = "eps" if facts["alpha"] is None else "eps_inf"
    table = console.table("learnt from", budget, *headings, left=("learnt from",), padding=(0, 1, 0, 0))
    for column in table.columns:
        column.no_wrap = True
    for one in learnt:
        budget = "" if one["eps"] is None else f"{one['eps']:.4g}"
        table.add_row(escape(one["source"]), budget, *(_mean(name, **one[name]) for name in shown))
    for line in (*lines, ""):
        console.out.print(escape(line))
    console.out.print(table)


def _mean(name: str, value: float | None, error: float | None) -> str:
    """The errors of gaps are left to JSON and the page: a terminal is narrow."""
    if value is None:
        return "–"
    return f"{value:.3f}" + ("" if error is None or name.endswith("gap") else f" ±{error:.3f}")
