"""Forecasts as one self-contained page: a chart for each series, and what left its interval marked."""

from __future__ import annotations

from html import escape

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from hearsay.forecasts.forecasting import Outlook, Outlooks, finite
from hearsay.forecasts.time_axis import TimeAxis

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #222 }
.note { color: #666 }
"""
SHOWN_BEFORE = 6  # times as many past periods as are forecast, at least
COLOURS = {"truth": "rgba(31, 119, 180, 0.35)", "publication": "rgba(31, 119, 180, 0.15)"}


def page(outlooks: Outlooks) -> str:
    """The page of all series."""
    charts = "".join(
        _chart(outlook, outlooks.axis).to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False})
        for outlook in outlooks.found
    )
    remarks = "".join(f'<p class="note">{escape(remark)}</p>' for remark in outlooks.remarks)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Forecasts of {escape(outlooks.source)}</title>
<style>{STYLE}</style><script>{get_plotlyjs()}</script></head><body>
<h1>Forecasts of {escape(outlooks.source)}</h1>
<p>Dark: the 95 % interval of the truth. Light: the 95 % interval of what will be published, which contains the noise of
the publication. Crosses: publications that left the 99 % interval of the forecast one period before.</p>
{remarks}{charts}
</body></html>
"""


def _chart(outlook: Outlook, axis: TimeAxis) -> go.Figure:
    series, made = outlook.series, outlook.forecast
    begin = max(0, len(series) - max(100, SHOWN_BEFORE * len(made.mean)))
    past = [axis.at(place) for place in range(begin, len(series))]
    future = [axis.at(len(series) + step) for step in range(len(made.mean))]
    figure = go.Figure()
    for kind in ("publication", "truth"):
        low, high = made.interval(kind, 0.95)
        figure.add_scatter(
            x=[*future, *future[::-1]], y=[*high, *low[::-1]], name=f"95 % {kind}",
            line={"width": 0}, fill="toself", fillcolor=COLOURS[kind], hoverinfo="skip",
        )  # fmt: skip
    figure.add_scatter(x=past, y=finite(series.values[begin:]), name="published", line={"color": "#444", "width": 1})
    figure.add_scatter(x=future, y=finite(made.mean), name="forecast", line={"color": "#1f77b4"})
    marked = [place for place in outlook.unexpected if place >= begin]
    figure.add_scatter(
        x=[axis.at(place) for place in marked], y=finite(series.values[marked]), name="outside 99 %",
        mode="markers", marker={"symbol": "x", "color": "#d62728", "size": 9},
    )  # fmt: skip
    figure.update_layout(title=escape(series.name), height=380, template="plotly_white")
    return figure
