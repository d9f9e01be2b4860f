"""A device that is asked where it is: a position near a border, an unknown one, and the limits of its owner."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import hearsay
from protocols.errors import DeviceError
from tests.helpers.surveys import scheme_with

ANYTHING = hearsay.Limits(report=1e6, value=1e6, year=1e7, ratio=1)


def test_a_device_near_a_border_keeps_its_cell_also_if_it_does_not_know_where_it_is(tmp_path: Path) -> None:
    """The memo is sent, so the same report again means the same cell."""
    grid = {"at": [47.2, 6.0], "cell": "500m", "columns": 6, "rows": 4}
    scheme = scheme_with({"name": "place", "grid": grid, "geo_inf": {"level": 1.1, "radius": "400m"}}, memo_cap=3)
    moment = [datetime(2026, 1, 1, 12, tzinfo=UTC)]
    near: list[Any] = [{"x": x, "y": 700.0} for x in (990.0, 1010.0, 1120.0)]
    wrong = [{"x": 1.0}, {"latitude": "here", "longitude": 6}, {"x": float("nan"), "y": 1.0}, "x9y9", None]
    with hearsay.Device(tmp_path / "device.db", limits=ANYTHING, now=lambda: moment[0].timestamp()) as device:
        survey = device.join(scheme.terms, trust_first_use=True)
        sent = []
        for day, position in enumerate([*near, *wrong], 1):
            moment[0] = datetime(2026, 1, day, 12, tzinfo=UTC)
            report = device.settle(survey, {"place": position})
            sent.append(json.loads(report.report)["answers"]["place"])
            assert report.unlisted == (() if position in near else ("place",))
        assert len(set(sent)) == 1


def test_limits_count_what_two_positions_500_metres_apart_reveal(tmp_path: Path) -> None:
    grid = {"at": [47.2, 6.0], "cell": "500m", "columns": 6, "rows": 4}
    weak = scheme_with({"name": "place", "grid": grid, "geo": {"level": 1.7, "radius": "400m"}})
    with hearsay.Device(tmp_path / "device.db") as device, pytest.raises(DeviceError, match=r"may reveal 1\.7,"):
        device.join(weak.terms, trust_first_use=True)
