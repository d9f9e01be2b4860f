"""JSON Schemas of published results: `python -m views.results.schemas histogram` prints one."""

import json
import sys
from typing import Any

from views.view import View, all_views


def schema(view: View[Any]) -> str:
    """The schema of one kind of result, as it stands in docs/schemas."""
    return json.dumps(view.model.model_json_schema(mode="serialization"), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema(next(view for view in all_views() if view.kind == sys.argv[1])))
