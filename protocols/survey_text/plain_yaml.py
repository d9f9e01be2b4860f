"""Plain YAML: scalars are text.

YAML guesses types: `no` is a boolean, `12:30` is 750, `010` is 8, and of two equal keys the second wins. Here scalars
are text, as written, and the caller converts them; only `null` and an empty value are None. Keys are text and occur
once. Anchors and tags are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]
NULL = "tag:yaml.org,2002:null"
MAX_TEXT = 4 << 20


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
    document = Document()
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        document.data = None if node is None else _Reader(document.lines).read(node, ())
    except yaml.MarkedYAMLError as error:
        where = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
        raise NotPlain(f"{where}not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise error if isinstance(error, NotPlain) else NotPlain(f"not YAML: {error}") from None
    except RecursionError:
        raise NotPlain("not YAML: nested too deeply") from None
    return document


class _Reader:
    def __init__(self, lines: dict[Path, int]) -> None:
        self._lines = lines
        self._seen: set[int] = set()

    def read(self, node: yaml.Node, path: Path) -> Any:
        line = node.start_mark.line + 1
        self._lines[path] = line
        if id(node) in self._seen:
            raise NotPlain(f"line {line}: an anchor is used again; write it out")
        self._seen.add(id(node))
        _refuse_tag(node, line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(entry, (*path, place)) for place, entry in enumerate(node.value)]
        return None if node.tag == NULL else node.value

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise NotPlain(f"line {line}: a key that is not one word; put it in quotes")
            _refuse_tag(key_node, line)
            key: str = key_node.value
            if key in data:
                raise NotPlain(f"line {line}: {key!r} is there twice; keep one")
            data[key] = self.read(value_node, (*path, key))
            self._lines[(*path, key)] = line
        return data


def _refuse_tag(node: yaml.Node, line: int) -> None:
    if not node.tag.startswith("tag:yaml.org,2002:"):
        raise NotPlain(f"line {line}: the tag {node.tag} is not supported; leave it out")
