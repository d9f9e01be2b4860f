"""Dwell times: which names of values are numbers, which are durations, and which only look like them."""

from __future__ import annotations

import pytest

from analytics.mobility.dwells import middle_values
from protocols import Attribute


@pytest.mark.parametrize(
    ("values", "middles", "unit"),
    [
        (("0-9", "10-19", "20-20"), [4.5, 14.5, 20], ""),
        (("30m", "1h-3h", "1d"), [0.5, 2, 24], "hours"),
        (("short", "long"), None, ""),
        (("1h", "2"), None, ""),
        (("1h", "12345678901h"), None, ""),
        (("1h", "999999999w"), None, ""),
        (("1h", "٣h"), None, ""),
    ],
)
def test_values_have_a_middle_if_their_names_say_so(
    values: tuple[str, ...], middles: list[float] | None, unit: str
) -> None:
    found, said = middle_values(Attribute(name="dwell", values=values))
    assert (None if found is None else found.tolist(), said) == (middles, unit)
