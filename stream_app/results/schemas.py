"""JSON Schemas of what is published: `python -m stream_app.results.schemas histogram` prints one."""

from __future__ import annotations

import json
import sys

from pydantic import BaseModel

from stream_app.results.histograms import Histogram, Live

PUBLISHED: dict[str, type[BaseModel]] = {"histogram": Histogram, "live": Live}  # by topic, in the singular


def schema(name: str) -> str:
    """The schema of one kind of result, as it stands in a file."""
    return json.dumps(PUBLISHED[name].model_json_schema(mode="serialization"), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema(sys.argv[1]))
