"""From a column of text to positions in a survey's list of values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from protocols.survey import Attribute

UNKNOWN = -1


def places(column: pa.Array, attribute: Attribute) -> NDArray[np.int32]:
    """The position of each cell's value, or UNKNOWN. In an ordered range, a number has the position of its step.

    >>> ages = Attribute.model_validate({"name": "age", "range": {"first": 10, "last": 39, "step": 10}})
    >>> places(pa.array(["10-19", "25", "39", "40", "", "young"]), ages).tolist()
    [0, 1, 2, -1, -1, -1]
    """
    named = pc.index_in(column, value_set=pa.array(attribute.values))
    found = np.array(pc.fill_null(named, UNKNOWN), dtype=np.int32)
    if attribute.range is not None:
        numeric = (found == UNKNOWN) & np.asarray(pc.match_substring_regex(column, r"^-?\d{1,15}$"))
        numbers = column.filter(pa.array(numeric)).cast(pa.int64()).to_numpy()
        within = (numbers >= attribute.range.first) & (numbers <= attribute.range.last)
        steps = (numbers - attribute.range.first) // attribute.range.step
        found[numeric] = np.where(within, steps, UNKNOWN)
    return found
