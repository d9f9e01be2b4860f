"""Plain YAML: scalars are text.

YAML guesses types: `no` is a boolean, `12:30` is 750, `010` is 8, and of two equal keys the second wins. Here scalars
are text, as written, and the caller converts them; only `null` and an empty value are None. Keys are text and occur
once. Anchors and tags are refused.
"""

from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]
NULL = "tag:yaml.org,2002:null"
MAX_TEXT = 1 << 20
MAX_PARTS = 75_000
"""The largest attribute has 65,536 values. So many take a second or two to read; a text with more is not begun."""


class NotPlain(ValueError):
    """Text that is not plain YAML; the message has the line."""

    hint = "check indentation and quotes"


class TooLong(NotPlain):
    """Text that is not read, because of its size."""

    hint = (
        "list at most 65,536 values, put them into a file (`values_from`), give numbers as a `range`, "
        "or ask for groups of values first"
    )


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
        raise TooLong(f"{len(text):,} characters; at most {MAX_TEXT:,} are read")
    if text.count(",") + text.count("\n") >= MAX_PARTS:
        raise TooLong(f"more than {MAX_PARTS:,} lines and values")
    lines: dict[Path, int] = {}
    try:
        node = yaml.compose(text, Loader=_Loader)
        return Document(None if node is None else _read(node, (), lines), lines)
    except yaml.MarkedYAMLError as error:
        where = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
        raise NotPlain(f"{where}not YAML: {error.problem or error.context}") from None
    except RecursionError:
        raise NotPlain("not YAML: nested too deeply") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise error if isinstance(error, NotPlain) else NotPlain(f"not YAML: {error}") from None


class _Loader(yaml.SafeLoader):
    """Refuses anchors that are used again: what they stand for could be many times as large as the text."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
            raise NotPlain(f"line {_line(event)}: an anchor is used again; write it out")
        return super().compose_node(parent, index)


def _read(node: yaml.Node, path: Path, lines: dict[Path, int]) -> Any:
    """The data of a node; notes the line of each part."""
    lines[path] = _line(node)
    _refuse_tag(node)
    if isinstance(node, yaml.ScalarNode):
        return None if node.tag == NULL else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_read(part, (*path, place), lines) for place, part in enumerate(node.value)]
    data: dict[str, Any] = {}
    for key, value in node.value:
        line = _line(key)
        if not isinstance(key, yaml.ScalarNode):
            raise NotPlain(f"line {line}: a key that is not one word; put it in quotes")
        _refuse_tag(key)
        if key.value in data:
            raise NotPlain(f"line {line}: {key.value!r} is there twice; keep one")
        data[key.value] = _read(value, (*path, key.value), lines)
        lines[(*path, key.value)] = line
    return data


def _line(part: yaml.Node | yaml.Event) -> int:
    return 0 if part.start_mark is None else part.start_mark.line + 1


def _refuse_tag(node: yaml.Node) -> None:
    if not node.tag.startswith("tag:yaml.org,2002:"):
        raise NotPlain(f"line {_line(node)}: the tag {node.tag} is not supported; leave it out")
