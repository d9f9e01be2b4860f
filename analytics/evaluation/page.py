"""The evaluation as one self-contained HTML page with charts and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.colors import qualitative
from plotly.offline import get_plotlyjs

from analytics.evaluation.scores import Infeasible, Outcome, Score

SYMBOLS = {"smp": "circle", "spl": "square", "rs+fd": "diamond", "rs+rfd": "star"}
DASHES = {"exact": "solid", "tuple": "solid", "attribute": "dash", "published": "dot"}
LOG_AXIS = {"type": "log", "exponentformat": "power", "dtick": "D2"}  # ticks at 1, 2 and 5 of every decade
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem }
th, td { padding: 0.2rem 0.8rem; text-align: right; border-bottom: 1px solid #ddd }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left }
.headline { font-weight: bold } .note { color: #666 } .wide { overflow-x: auto }
"""


def page(facts: Mapping[str, Any], outcomes: Sequence[Outcome]) -> str:
    """The page of outcomes; `facts` describes the measurement (source, attributes, people, alpha, runs)."""
    scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
    charts = [against_budget(scores), against_prediction(scores)] if scores else []
    drawn = "".join(
        figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False}) for figure in charts
    )
    people = facts["people"]
    attributes = ", ".join(f"{name} ({k})" for name, k in facts["attributes"].items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Evaluation on {escape(str(facts["source"]))}</title>
<style>{STYLE}</style><script>{get_plotlyjs()}</script></head><body>
<h1>Errors of methods where the truth is known</h1>
<p>Measured on {escape(str(facts["source"]))}: {sum(people):,} reports in {len(people)} period(s),
{facts["runs"]} run(s), eps_1 = {facts["alpha"]:g} eps_inf. Attributes (numbers of values): {escape(attributes)}.</p>
{drawn}
<h2>All figures</h2>
<p class="note">Bold: the correction that goes with the method (clip for the papers' variants, Norm-Sub for ours,
ibu for ordered mechanisms).
"Reveals": the loss of one report between any two people, computed from the channel, whatever budget was declared.
"Theory": the MSE of the raw estimate in closed form. "RMSE": the root of the bold figure.</p>
{_table(scores)}
{"".join(_cannot(outcome) for outcome in outcomes if isinstance(outcome, Infeasible))}
</body></html>
"""


def against_budget(scores: Sequence[Score]) -> go.Figure:
    """MSE_avg by budget, one line per method, with standard errors over the runs; a menu selects the correction."""
    corrections = list(scores[0].mse)
    lines = _lines(scores)
    colours = dict.fromkeys(line[0].method.label for line in lines)
    colours = {label: qualitative.Dark24[place % 24] for place, label in enumerate(colours)}
    figure = go.Figure()
    for correction in corrections:
        for line in lines:
            figure.add_scatter(
                x=[score.eps for score in line],
                y=[score.mse[correction].value for score in line],
                error_y={"array": [score.mse[correction].error for score in line], "thickness": 1},
                name=_label(line[0]),
                visible=correction == _first_shown(corrections),
                line={"color": colours[line[0].method.label], "dash": DASHES[line[0].method.terms]},
                marker={"symbol": SYMBOLS[line[0].method.solution], "size": 8},
            )
    shown = [[correction == other for other in corrections for _ in lines] for correction in corrections]
    buttons = [
        {"label": correction, "method": "restyle", "args": [{"visible": mask}]}
        for correction, mask in zip(corrections, shown, strict=True)
    ]
    menu = {"buttons": buttons, "active": corrections.index(_first_shown(corrections)), "x": 1, "y": 1.12}
    figure.update_layout(
        title="MSE_avg by budget", xaxis_title="eps_inf, or eps of one-shot methods", yaxis_title="MSE_avg",
        yaxis=LOG_AXIS, height=640, template="plotly_white", updatemenus=[menu],
    )  # fmt: skip
    return figure


def against_prediction(scores: Sequence[Score]) -> go.Figure:
    """Measured MSE of raw estimates against the closed form; if both are right, points lie on the diagonal."""
    raw = [score for score in scores if "raw" in score.mse]
    figure = go.Figure()
    ends = [bound(score.expected for score in scores) for bound in (min, max)]
    figure.add_scatter(x=ends, y=ends, mode="lines", name="equal", line={"color": "#999", "dash": "dot"})
    figure.add_scatter(
        x=[score.expected for score in raw],
        y=[score.mse["raw"].value for score in raw],
        error_y={"array": [score.mse["raw"].error for score in raw], "thickness": 1},
        text=[f"{_label(score)}, eps {score.eps:g}" for score in raw],
        mode="markers",
        name="methods",
    )
    figure.update_layout(
        title="Raw estimates: measured MSE against theory", xaxis_title="MSE in theory", yaxis_title="measured MSE",
        xaxis=LOG_AXIS, yaxis=LOG_AXIS, height=520, template="plotly_white", showlegend=False,
    )  # fmt: skip
    return figure


def _lines(scores: Sequence[Score]) -> list[list[Score]]:
    """The scores of each method and variant, by budget."""
    lines: dict[Any, list[Score]] = {}
    for score in scores:
        lines.setdefault(score.method, []).append(score)
    return [sorted(line, key=lambda score: score.eps) for line in lines.values()]


def _first_shown(corrections: Sequence[str]) -> str:
    return "norm-sub" if "norm-sub" in corrections else corrections[0]


def _label(score: Score) -> str:
    ours = score.method.terms in ("exact", "tuple")
    return score.method.name if ours else f"{score.method.name}, {score.method.terms}"


def _table(scores: Sequence[Score]) -> str:
    if not scores:
        return ""
    corrections = list(scores[0].mse)
    headings = ["method", "terms", "eps", "reveals", *(f"MSE {name}" for name in corrections), "theory", "RMSE"]
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    rows = "".join(map(_row, scores))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(score: Score) -> str:
    cells = [score.method.name, score.method.terms, f"{score.eps:g}", f"{score.guarantees.per_report.whole:.3g}"]
    row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    for name, mean in score.mse.items():
        mark = ' class="headline"' if name == score.headline else ""
        row += f"<td{mark}>{mean.value:.3e}</td>"
    return f"<tr>{row}<td>{score.expected:.3e}</td><td>{score.rmse(score.headline):.4f}</td></tr>"


def _cannot(outcome: Infeasible) -> str:
    return f'<p class="note">{escape(outcome.method.name)} at eps {outcome.eps:g}: {escape(outcome.reason)}</p>'
