"""Columns of values as users have them: lists, arrays, columns of a data frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def distinct(values: ArrayLike) -> tuple[list[str], NDArray[np.integer[Any]]]:
    """The different values as text, and for each row the place of its value among them.

    >>> named, which = distinct([7, 3, 7])
    >>> named, which.tolist()
    (['3', '7'], [1, 0, 1])
    """
    column = np.asarray(values)
    if column.dtype == object:
        column = column.astype(str)
    found, which = np.unique(column, return_inverse=True)
    return [str(value) for value in found], which.reshape(column.shape)
