"""What evaluations measured, on a terminal."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.markup import escape
from rich.table import Table

from hearsay.terminal import console
from lab.evaluation.measuring import Outcome, Score


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
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("asked as", "mechanism", "budget", "RMSE", "±", "of a value that nobody has, expected"):
        table.add_column(heading, justify="left" if heading in ("asked as", "mechanism") else "right")
    for one in scores:
        figures = (*one["rmse"].values(), one["expected"])
        shown = ("–" if figure is None else f"{figure:.4f}" for figure in figures)
        table.add_row(one["way"], one["mechanism"], f"{one['eps']:g}", *shown)
    console.out.print(table)


def _show_budget(eps: float, alpha: float, outcomes: Sequence[Outcome]) -> None:
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
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("learnt from", no_wrap=True)
    shown = [name for name in learnt[0] if name not in ("source", "eps", "reveals")]
    for heading in ("eps" if facts["alpha"] is None else "eps_inf", *shown):
        table.add_column("AUC" if heading == "auc" else heading.replace("_gap", "\ngap"), justify="right", no_wrap=True)
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
