"""The study of response times: a made-up city and a file give the columns, and noise costs what it must."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "studies" / "response-time"
MODULES = ("study", "places", "models", "incidents")


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(FOLDER)
    import study as found

    yield found
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.long(part="statistics")
def test_more_noise_moves_more_incidents_and_costs_accuracy(study: Any) -> None:
    budgets = study.BUDGETS[0], study.BUDGETS[4]
    none, little, much = study.study(study.made_up_city(2_500, seed=1), budgets, seed=1)
    assert none["reassigned"] == {"zone": 0, "city": 0, "district": 0}
    assert 0 < little["reassigned"]["district"] < much["reassigned"]["district"]
    assert none["mean_distance_km"] < little["mean_distance_km"] < much["mean_distance_km"]
    assert none["correlation"] > little["correlation"] > much["correlation"]
    errors = [record["models"]["least squares"] for record in (none, little, much)]
    assert errors[0]["rmse"] < errors[1]["rmse"] * 1.01 < errors[2]["rmse"]
    assert errors[2]["expected_distance"]["rmse"] < errors[2]["rmse"], "attenuated slopes are corrected"


def test_reports_are_made_by_the_devices_and_keep_the_declared_rate(study: Any) -> None:
    city = study.made_up_city(500, seed=2)
    around = study.Map.around(city)
    cells = study.randomised(city, around, study.Budget(np.log(3), 200.0), seed=3)
    x, y = around.centres(cells)
    moved = np.hypot(x - city.x, y - city.y)
    assert 250 < moved.mean() < 480, "2 / eps is 364 m on average; cells round it"


def test_a_file_is_read_and_a_bad_one_refused(study: Any, tmp_path: Path) -> None:
    city = study.made_up_city(50, seed=3)
    path = tmp_path / "incidents.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "y", "station_x", "station_y", "response_minutes", "zone", "kind", "hour"])
        columns = city.x, city.y, city.station_x, city.station_y, city.minutes, city.areas["zone"]
        writer.writerows((*row, "fire" if row[0] > 9000 else "other", 3) for row in zip(*columns, strict=True))
    found = study.from_csv(path)
    assert np.allclose(found.x, city.x) and list(found.areas) == ["zone"]
    assert sorted(found.known) == ["hour", "kind_other"]
    path.write_text("x,y\n1,2\n")
    with pytest.raises(SystemExit, match="station_x"):
        study.from_csv(path)
