"""The rows of gaps, looked up for a batch of reports."""

import numpy as np

from protocols.arrays import Column, Rows, Whole, are_compiled


def look_up(gaps: Column, rows_of: Rows, rows: Rows, n: Whole) -> bool:
    """Look up the row of each gap, and count rows; False at a gap that has none.

    >>> rows, n = np.empty(3, dtype=np.int32), np.zeros(2, dtype=np.int64)
    >>> look_up(np.array([3, 1, 3], dtype=np.uint16), np.array([-1, 0, -1, 1], dtype=np.int32), rows, n)
    True
    >>> rows.tolist(), n.tolist()
    ([1, 0, 1], [1, 2])
    """
    if are_compiled():
        from protocols.arrays.compiling import frozen
        from stream_app.counting.tables import compiled_loops

        return bool(compiled_loops.look_up(frozen(gaps), rows_of, rows, n))
    rows[:] = rows_of[gaps]
    if (rows < 0).any():
        return False
    n += np.bincount(rows, minlength=len(n))
    return True
