"""`hearsay evaluate`: compare methods on a population whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hearsay.commands.replay import positions_of
from hearsay.terminal import console

if TYPE_CHECKING:
    from pages.events import Event


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
        from lab.commands.evaluation_tables import print_learnt, print_scores, print_sets
        from lab.documents import evaluation_event, learning_event
        from lab.evaluation.measuring import CORRECTIONS
        from lab.evaluation.measuring import evaluate as evaluate_methods
        from lab.evaluation.methods import choose
        from lab.evaluation.sets import compare_sets
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
        _show({**facts, "scores": scores}, lambda: print_sets(scores, len(values)), as_json)
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
        _show(shown, lambda: print_learnt(facts, learnt), as_json, html, f"Learning from {csv}", page)
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
    facts |= {"people": truth.people.tolist(), "within": {name: place.radius for name, place in truth.places.items()}}
    shown, page = {**facts, "outcomes": [one.record() for one in outcomes]}, evaluation_event(facts, outcomes)
    _show(shown, lambda: print_scores(facts, outcomes), as_json, html, f"Evaluation on {source}", page)


def _show(
    figures: dict[str, Any],
    tables: Callable[[], None],
    as_json: bool,
    html: Path | None = None,
    title: str = "",
    *events: Event,
) -> None:
    """Print figures. A page is written last: they are shown even if the file cannot be written."""
    if as_json:
        console.print_json(figures)
    else:
        tables()
    if html is not None:
        from pages.static import static_page

        html.write_text(static_page(title, list(events)), encoding="utf-8")
        if not as_json:
            console.out.print(f"Charts: {html}", soft_wrap=True, markup=False)
