"""Tables as HTML, for notebooks: what `_repr_html_` of plans, surveys and results returns."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], below: Iterable[str] = ()) -> str:
    """A title, a table, and sentences below it. Numbers have four digits; what is not known is empty.

    >>> html_table("a < b", ["share"], [[0.12345], [None]])
    '<p><b>a &lt; b</b></p><table><tr><th>share</th></tr><tr><td>0.1235</td></tr><tr><td></td></tr></table>'
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(_cell(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    told = "".join(f"<p>{escape(sentence)}</p>" for sentence in below)
    return f"<p><b>{escape(title)}</b></p><table><tr>{head}</tr>{body}</table>{told}"


def _cell(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.4g}" if abs(cell) < 1e4 else f"{cell:,.0f}"
    return "" if cell is None else str(cell)
