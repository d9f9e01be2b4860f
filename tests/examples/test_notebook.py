"""The notebook runs from its first cell to its last, and what it shows is near the truth."""

import ast
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "collection.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell, and return what its last line is worth, which a notebook shows."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.long(part="pages")
def test_the_notebook_runs_and_its_intervals_hold_the_truth() -> None:
    import matplotlib  # takes half a second to import

    matplotlib.use("Agg")
    names: dict[str, Any] = {}
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in cells)
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # matplotlib's own
        shown = [run_cell("".join(cell["source"]), names) for cell in cells]
    tables = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    assert len(tables) == 5 and all("<table>" in table for table in tables)
    held = [row["low"] < true < row["high"] for row, true in zip(names["days"], names["truth"], strict=True)]
    assert np.mean(held) > 0.8
    weekend = [row["mean"] for row in names["ahead"].table.to_pylist()][5:]
    assert all(0.4 < share < 0.6 for share in weekend), "days 33 and 34 are a weekend"
