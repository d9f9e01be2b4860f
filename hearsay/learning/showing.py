"""What a classifier learns, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from analytics.evaluation import Mean
from analytics.learning import Learnt

HEADINGS = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "parity_gap": "parity\ngap",
    "opportunity_gap": "opportunity\ngap",
    "accuracy_gap": "accuracy\ngap",
}


def learning_table(facts: dict[str, Any], learnt: Sequence[Learnt]) -> RenderableType:
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
    shown = [name for name in HEADINGS if name in learnt[0].figures]
    for heading in ("eps" if facts["alpha"] is None else "eps_inf", *(HEADINGS[name] for name in shown)):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in learnt:
        budget = "" if one.eps is None else f"{one.eps:.4g}"
        table.add_row(escape(one.source), budget, *(_figure(name, one.figures[name]) for name in shown))
    return Group(*(escape(line) for line in lines), "", table)


def _figure(name: str, mean: Mean) -> str:
    """The errors of gaps are left to JSON and the page: a terminal is narrow."""
    if not isfinite(mean.value):
        return "–"
    error = "" if name.endswith("gap") or not isfinite(mean.error) else f" ±{mean.error:.3f}"
    return f"{mean.value:.3f}{error}"
