"""The report as one self-contained HTML file with charts, tables and notes.

`page_data` provides the numbers and labels, `page.js` draws them with the plotly library that is embedded in the file,
and `page.css` is the style. The page's content security policy forbids network access.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files

from analytics.mobility.model import MobilityReport
from analytics.mobility.output.page.data import page_data


def render_page(report: MobilityReport) -> str:
    """The whole page as text."""
    here, data = files(__package__), page_data(report)
    parts = {
        "title": escape(report.title),
        "notes": "\n".join(f"<li>{escape(note)}</li>" for note in report.notes),
        "data": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "style": (here / "page.css").read_text(),
        "drawing": (here / "page.js").read_text(),
        "plotly": (files("plotly") / "package_data" / "plotly.min.js").read_text(),
    }
    page = (here / "page.html").read_text()
    for name, text in parts.items():
        page = page.replace(f"{{{{ {name} }}}}", text, 1)
    return page
