"""The truth as a file, as histograms and as windows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from producers.scenarios import SCENARIOS, scenario, unique_devices, unique_histogram
from producers.scenarios.base import Presences
from producers.scenarios.truth import true_histogram, write_truth


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_truth_file_holds_every_presence_with_its_values_by_name(name: str, tmp_path: Path) -> None:
    truth = scenario(name, devices=500, periods=4, seed=9)
    told: list[tuple[int, int]] = []
    rows = write_truth(truth, tmp_path / "truth.parquet", progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    table = pq.read_table(tmp_path / "truth.parquet")
    assert table.schema.metadata[b"scenario"] == name.encode()
    assert table.column_names == ["period", "device", *truth.attributes]
    assert table.num_rows == rows == sum(len(truth.presences(period).devices) for period in range(4))
    for period in range(4):
        expected = truth.presences(period)
        written = table.filter(pc.equal(table["period"], period))
        assert written["device"].to_pylist() == expected.devices.tolist()
        for attribute, names in truth.attributes.items():
            assert written[attribute].to_pylist() == [names[value] for value in expected.values[attribute]]


def test_each_period_is_written_as_it_comes(tmp_path: Path) -> None:
    write_truth(scenario("telemetry", devices=300, periods=5), tmp_path / "truth.parquet")
    file = pq.ParquetFile(tmp_path / "truth.parquet")
    assert [set(file.read_row_group(group)["period"].to_pylist()) for group in range(5)] == [{0}, {1}, {2}, {3}, {4}]


def test_a_truth_file_that_was_not_finished_does_not_bear_its_name(tmp_path: Path) -> None:
    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_truth(scenario("telemetry", devices=300, periods=5), tmp_path / "truth.parquet", progress=stop)
    assert not (tmp_path / "truth.parquet").exists()


class ThreeDays:
    """A few devices over three days, small enough to count by hand."""

    def __init__(self) -> None:
        self.name = "three days"
        self.devices, self.periods = 4, 3
        self.attributes: dict[str, tuple[str, ...]] = {"plan": ("free", "paid")}

    def presences(self, period: int) -> Presences:
        devices, values = [([0, 2], [0, 1]), ([2], [0]), ([0, 1], [1, 1])][period]
        return Presences(period, np.array(devices, dtype=np.uint64), {"plan": np.array(values)})


def test_unique_devices_are_those_of_any_period_of_the_window() -> None:
    assert unique_devices(ThreeDays(), 0, 2).tolist() == [0, 1, 2]
    assert unique_devices(ThreeDays(), 0, 1).tolist() == [0, 2]
    assert unique_devices(ThreeDays(), 1, 1).tolist() == [2]


def test_a_unique_device_counts_with_its_first_value_in_the_window() -> None:
    assert unique_histogram(ThreeDays(), "plan", 0, 2).tolist() == [1, 2]  # 0 free, 2 paid, 1 paid
    assert unique_histogram(ThreeDays(), "plan", 1, 2).tolist() == [1, 2]  # 2 free, 0 paid, 1 paid
    assert unique_histogram(ThreeDays(), "plan", 2, 2).tolist() == [0, 2]
    assert true_histogram(ThreeDays().presences(1), "plan", 2).tolist() == [1, 0]
