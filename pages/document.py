"""A document to print, made from a text and values; without scripts.

A line of the text is an element: # a heading, ! a leading paragraph, = text as it is, ? what the reader must write, ~
what is not compared; anything else is a paragraph. `| a | b` are the headings of a table, and `|name {0.x} | {0.y}`
after it makes a row for each of the values `name`. After `::` comes the command that prints the line's values again.
Values are in braces, as `str.format` takes them. A line after [name] is left out if that value is empty, after [!name]
if it is not.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from html import escape, unescape
from typing import Any, NamedTuple

from pages.static import filled, read

TAGS = {"#": "<h2>", "!": '<p class="lead">', "=": "<pre>", "?": '<div class="yours" contenteditable="true">',
        "~": '<p class="versions">', "": "<p>"}  # fmt: skip
YOURS = "To be written by the data protection officer: "
_NOT_COMPARED = re.compile(r'(<(div|p) class="(?:yours|versions)"[^>]*>).*?(</\2>)', re.DOTALL)


class Element(NamedTuple):
    """A line of the text, or a table."""

    kind: str
    text: str
    command: str
    rows: list[list[str]]


def elements(text: str, values: Mapping[str, Any]) -> Iterator[Element]:
    """The elements of a document.

    >>> list(elements("There are {n}. :: hearsay count\\n[more] # {more}", {"n": 3, "more": None}))
    [Element(kind='', text='There are 3.', command='hearsay count', rows=[])]
    >>> list(elements("| tree | age\\n|trees {0[0]} | {0[1]}", {"trees": [("oak", 300)]}))[0].rows
    [['tree', 'age'], ['oak', '300']]
    """
    table: list[str] = []
    for line in text.splitlines():
        unless, name, kind, rest = re.fullmatch(r"(?:\[(!?)(\w+)\] )?([#!=?~|]?)(.*)", line).groups()  # type: ignore[union-attr]
        if name is not None and bool(values[name]) == bool(unless):
            continue
        if kind != "|":
            said, _, command = rest.strip().partition(" :: ")
            yield Element(kind, said.format(**values).strip(), command.format(**values), [])
        elif rest.startswith(" "):
            table = rest.split(" | ")
        else:
            name, _, row = rest.partition(" ")
            cells = [[cell.format(each) for cell in row.split(" | ")] for each in values[name]]
            yield Element(kind, "", "", [[heading.strip() for heading in table], *cells])


def document_page(title: str, found: Iterable[Element]) -> str:
    """The document as a page, one element or row a line.

    >>> page = document_page("Trees", elements("Oaks & elms", {}))
    >>> print(page[page.index("<body>") : page.index("</html>")], end="")
    <body>
    <h1>Trees</h1>
    <p>Oaks &amp; elms</p>
    </body>
    """
    lines = [f"<h1>{escape(title)}</h1>", *(line for element in found for line in _lines(element))]
    return filled("document.html", {"title": escape(title), "style": read("document.css"), "body": "\n".join(lines)})


def differences(kept: str, made: str) -> Iterator[tuple[str, str]]:
    """What a kept page says and what one that was made now says, where they differ.

    >>> old, new = (document_page("Trees", elements("There are {n}.", {"n": n})) for n in (3, 4))
    >>> list(differences(old, new)), list(differences(new, new))
    ([('There are 3.', 'There are 4.')], [])
    """
    old, new = (_NOT_COMPARED.sub(r"\1\3", text).splitlines() for text in (kept, made))
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield _shown(old[a:b]), _shown(new[c:d])


def _shown(lines: list[str]) -> str:
    """The text of lines; the lines themselves, if they have none."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", " ".join(lines))).split()) or "\n".join(lines)


def _lines(element: Element) -> Iterator[str]:
    if element.kind == "|":
        for place, row in enumerate(element.rows):
            cell, before, after = ("td", "", "") if place else ("th", "<table><thead>", "</thead><tbody>")
            yield f"{before}<tr>{''.join(f'<{cell}>{escape(text)}</{cell}>' for text in row)}</tr>{after}"
        yield "</tbody></table>"
    else:
        tag, yours = TAGS[element.kind], YOURS if element.kind == "?" else ""
        code = f" <code>{escape(element.command)}</code>" if element.command else ""
        yield f"{tag}{yours}{escape(element.text)}{code}</{tag[1:].partition(' ')[0].rstrip('>')}>"
