"""The report as one HTML file: charts, tables and words, with nothing to fetch from anywhere.

Python says what is shown (`page_data`), `page.js` draws it with the plotly library that is embedded in the file, and
`page.css` says how it looks. The page forbids itself any network access.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files

from analytics.mobility.model import MobilityReport
from analytics.mobility.output.page.data import page_data


def render_page(report: MobilityReport) -> str:
    """The whole page, as text to be written to one file."""
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
