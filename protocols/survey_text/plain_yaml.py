"""Plain YAML: scalars are text.

YAML guesses types: `no` is a boolean, `12:30` is 750, `010` is 8, and of two equal keys the second wins. Here scalars
are text, as written, and the caller converts them; only `null` and an empty value are None. Keys are text and occur
once. Anchors and tags are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import yaml

Path = tuple[str | int, ...]
NULL = "tag:yaml.org,2002:null"
MAX_TEXT = 1 << 20
MAX_PARTS = 75_000
"""The largest attribute has 65,536 values. So many take a second or two to read; a text with more is not begun."""
MAX_DEPTH = 100


class NotPlain(ValueError):
    """Text that is not plain YAML; the message has the line."""


@dataclass
class Document:
    """The data of a text, and the line of each part."""

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of `path`, or of the nearest part around it; None if that is the whole document."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines[path] if path else None


def read_yaml(text: str) -> Document:
    """Plain YAML (or JSON). Raises NotPlain, and nothing else, whatever the text.

    >>> read_yaml("{colours: [red, no], when: 12:30, then:}").data
    {'colours': ['red', 'no'], 'when': '12:30', 'then': None}
    """
    if len(text) > MAX_TEXT:
        raise NotPlain(f"{len(text)} characters; at most {MAX_TEXT} are read")
    if text.count(",") + text.count("\n") > MAX_PARTS:
        raise NotPlain(f"more than {MAX_PARTS} lines and values")
    try:
        return _Reader(yaml.parse(text, Loader=yaml.SafeLoader)).document()
    except yaml.MarkedYAMLError as error:
        where = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
        raise NotPlain(f"{where}not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise error if isinstance(error, NotPlain) else NotPlain(f"not YAML: {error}") from None


class _Reader:
    """Makes data of the parser's events, which are read one by one: a text with too many ends early."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = islice(events, MAX_PARTS)
        self._lines: dict[Path, int] = {}
        self._depth = 0

    def document(self) -> Document:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                data = self._read(self._next(), ())
                self._next()  # the end of the document
                if not isinstance(more := self._next(), yaml.StreamEndEvent):
                    raise NotPlain(f"line {_line(more)}: not YAML: a second document begins")
                return Document(data, self._lines)
        return Document()

    def _read(self, event: yaml.Event, path: Path) -> Any:
        line = _line(event)
        self._lines[path] = line
        if isinstance(event, yaml.AliasEvent):
            raise NotPlain(f"line {line}: an anchor is used again; write it out")
        _refuse_tag(event, line)
        if isinstance(event, yaml.ScalarEvent):
            return None if _is_null(event) else event.value
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotPlain(f"line {line}: not YAML: nested too deeply")
        data = self._mapping(path) if isinstance(event, yaml.MappingStartEvent) else self._sequence(path)
        self._depth -= 1
        return data

    def _sequence(self, path: Path) -> list[Any]:
        data: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            data.append(self._read(event, (*path, len(data))))
        return data

    def _mapping(self, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            line = _line(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise NotPlain(f"line {line}: a key that is not one word; put it in quotes")
            _refuse_tag(event, line)
            key: str = event.value
            if key in data:
                raise NotPlain(f"line {line}: {key!r} is there twice; keep one")
            data[key] = self._read(self._next(), (*path, key))
            self._lines[(*path, key)] = line
        return data

    def _next(self) -> yaml.Event:
        event = next(self._events, None)
        if event is None:
            raise NotPlain(f"more than {MAX_PARTS} lines and values")
        return event


def _line(event: yaml.Event) -> int:
    return 0 if event.start_mark is None else event.start_mark.line + 1


def _is_null(event: yaml.ScalarEvent) -> bool:
    plain = event.implicit[0] and event.value in ("", "~", "null", "Null", "NULL")
    return plain or event.tag == NULL


def _refuse_tag(event: yaml.Event, line: int) -> None:
    tag: str | None = getattr(event, "tag", None)
    if tag is not None and not tag.startswith("tag:yaml.org,2002:"):
        raise NotPlain(f"line {line}: the tag {tag} is not supported; leave it out")
