"""JSON Schemas of published results: `python -m stream_app.results.schemas histogram` prints one."""

from __future__ import annotations

import json
import sys
from typing import Any

from stream_app.results.result_topics import RESULT_TOPICS, ResultTopic


def schema(topic: ResultTopic[Any]) -> str:
    """The schema of one kind of result, as it stands in docs/schemas."""
    return json.dumps(topic.model.model_json_schema(mode="serialization"), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema(next(topic for topic in RESULT_TOPICS if topic.kind == sys.argv[1])))
