"""Results as bytes: JSON, compressed, and cut into pieces where that is too large for one record.

A result that is too large keeps everything but its long columns, which are empty in it. They are in records of their
own, the pieces: each has some columns, or a range of one. The result lists the digests of its pieces, so it is the
manifest: it is published after them, and read only if all of them are there.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from stream_app.log import compress, decompress

SHORT = 4
"""Lists with at most so many entries are not moved to pieces."""


Range = dict[str, Any]
"""Consecutive `entries` of a column from `begin` on; `path` is its place in the result, a JSON Pointer (RFC 6901)."""


def digest(value: bytes) -> str:
    """Identifies a piece."""
    return sha256(value).hexdigest()[:32]


def encode(result: BaseModel, limit: int) -> tuple[list[bytes], bytes]:
    """The pieces of a result, none if it fits in one record of `limit` bytes, and the result itself.

    A limit that no cut can meet is exceeded.
    """
    text = result.model_dump_json().encode()
    whole = compress(text)
    if len(whole) <= limit:
        return [], whole
    tree = from_json(text)
    pieces = list(_pieces(list(_take_columns(tree)), tree["schema_version"], limit))
    return pieces, compress(to_json({**tree, "pieces": [digest(piece) for piece in pieces]}))


def decode(result: bytes) -> Any:
    """The JSON of a result, or of a piece. Raises ValueError if it is none."""
    return from_json(decompress(result))


def join(tree: dict[str, Any], pieces: Sequence[bytes]) -> None:
    """Fill in the columns of a decoded result from its pieces."""
    ranges: dict[str, list[Range]] = defaultdict(list)
    for piece in pieces:
        for column in decode(piece)["columns"]:
            ranges[column["path"]].append(column)
    for path, parts in ranges.items():
        *steps, last = path.removeprefix("/").split("/")
        place: Any = tree
        for step in steps:
            place = place[_index(place, step)]
        ordered = sorted(parts, key=itemgetter("begin"))
        place[_index(place, last)] = [entry for part in ordered for entry in part["entries"]]
    tree["pieces"] = []


def _index(place: Any, step: str) -> str | int:
    return int(step) if isinstance(place, list) else step


def _take_columns(tree: Any, path: str = "") -> Iterator[Range]:
    """Empty the long columns of a decoded result and return what they had."""
    for step, inner in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        here = f"{path}/{step}"
        if not isinstance(inner, (dict, list)):
            continue
        if isinstance(inner, list) and {dict, list}.isdisjoint(map(type, inner)):
            if len(inner) > SHORT:
                tree[step] = []
                yield {"path": here, "begin": 0, "entries": inner}
        else:
            yield from _take_columns(inner, here)


def _pieces(columns: list[Range], version: int, limit: int) -> Iterator[bytes]:
    """Pieces of at most `limit` bytes: the columns are halved, then the values of a single column."""
    piece = compress(to_json({"schema_version": version, "columns": columns}))
    if len(piece) <= limit or (len(columns) == 1 and len(columns[0]["entries"]) == 1):
        yield piece
        return
    if len(columns) > 1:
        middle = len(columns) // 2
        halves = columns[:middle], columns[middle:]
    else:
        (column,) = columns
        middle = len(column["entries"]) // 2
        first, second = column["entries"][:middle], column["entries"][middle:]
        halves = [column | {"entries": first}], [column | {"begin": column["begin"] + middle, "entries": second}]
    for half in halves:
        yield from _pieces(half, version, limit)
