"""JSON Schemas of what is published, for readers in other languages: `python -m stream_app.schemas docs/schemas`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from stream_app.results import Histogram, Live

PUBLISHED: dict[str, type[BaseModel]] = {"histogram": Histogram, "live": Live}  # by topic, in the singular


def schema(name: str) -> str:
    """The schema of one kind of result, as it stands in a file."""
    return json.dumps(PUBLISHED[name].model_json_schema(mode="serialization"), indent=2) + "\n"


def write_schemas(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name in PUBLISHED:
        (directory / f"{name}.json").write_text(schema(name))


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
