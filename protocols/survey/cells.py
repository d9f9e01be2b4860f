"""Which cells of a grid are inside: names of cells, and runs of neighbours in a row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

RUN = r"^x(0|[1-9][0-9]{0,4})(-[1-9][0-9]{0,4})?y(0|[1-9][0-9]{0,4})$"


def numbers_of(runs: Iterable[str], columns: int, rows: int) -> tuple[int, ...]:
    """The numbers of all cells, row * columns + column, ascending. Raises ValueError.

    >>> numbers_of(["x1-3y0", "x0y1"], 5, 2)
    (1, 2, 3, 5)
    """
    found: list[int] = []
    for run in runs:
        match = re.fullmatch(RUN, run)
        if match is None:
            raise ValueError(f"{run!r} is no cell; write x3y4, or for neighbours in a row x3-7y4")
        first, row = int(match[1]), int(match[3])
        last = first if match[2] is None else int(match[2][1:])
        if not (first <= last < columns and row < rows):
            raise ValueError(f"{run!r} is not on a grid of {columns} x {rows} cells")
        found += range(row * columns + first, row * columns + last + 1)
    if len(set(found)) < len(found):
        raise ValueError("names a cell twice; name each once")
    return tuple(sorted(found))


def runs_of(numbers: Sequence[int], columns: int) -> tuple[str, ...]:
    """The same cells, in as few words as possible.

    >>> runs_of((1, 2, 3, 5), 5)
    ('x1-3y0', 'x0y1')
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1 and number % columns:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return tuple(
        f"x{first % columns}{f'-{last % columns}' if last > first else ''}y{first // columns}" for first, last in runs
    )
