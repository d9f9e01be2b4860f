"""The truth of a scenario: as a Parquet file, as histograms, as unique devices of a window.

All by brute force from the presences, so that estimates are compared with an independent computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from producers.scenarios.base import Presences, Scenario

if TYPE_CHECKING:
    import pyarrow as pa  # imported when it is used: the command line lists scenarios without it


def write_truth(scenario: Scenario, path: Path | str, progress: Callable[[int, int], None] | None = None) -> int:
    """Write one row per presence (period, device, attributes as dictionary columns). Returns the number of rows.

    Needs the memory of one period. `progress` is called with (periods written, periods in all). The file gets its name
    only when it is complete.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    unfinished = path.with_name(path.name + ".unfinished")
    schema = pa.schema(
        [("period", pa.uint32()), ("device", pa.uint64())]
        + [(name, pa.dictionary(pa.int32(), pa.string())) for name in scenario.attributes],
        metadata={"scenario": scenario.name},
    )
    rows = 0
    with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
        for period in range(scenario.periods):
            table = _table(scenario, scenario.presences(period), schema)
            writer.write_table(table)
            rows += table.num_rows
            if progress is not None:
                progress(period + 1, scenario.periods)
    unfinished.replace(path)
    return rows


def _table(scenario: Scenario, presences: Presences, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    columns = [np.full(len(presences.devices), presences.period, dtype=np.uint32), presences.devices]
    for name, values in scenario.attributes.items():
        indices = pa.array(presences.values[name].astype(np.int32))
        columns.append(pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string())))
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=schema)


def true_histogram(presences: Presences, attribute: str, k: int) -> NDArray[np.int64]:
    """The number of present devices with each of the attribute's k values.

    >>> day = Presences(0, np.arange(4, dtype=np.uint64), {"plan": np.array([0, 2, 2, 0])})
    >>> true_histogram(day, "plan", 4).tolist()
    [2, 0, 2, 0]
    """
    return np.bincount(presences.values[attribute], minlength=k).astype(np.int64)


def unique_devices(scenario: Scenario, first: int, last: int) -> NDArray[np.uint64]:
    """The different devices present in at least one of the periods first..last, ascending."""
    seen = np.zeros(scenario.devices, dtype=np.bool_)
    for presences in _window(scenario, first, last):
        seen[presences.devices] = True
    return np.flatnonzero(seen).astype(np.uint64)


def unique_histogram(scenario: Scenario, attribute: str, first: int, last: int) -> NDArray[np.int64]:
    """The unique devices of periods first..last by each one's first value in the window (PROTOCOLS 7)."""
    seen = np.zeros(scenario.devices, dtype=np.bool_)
    counts = np.zeros(len(scenario.attributes[attribute]), dtype=np.int64)
    for presences in _window(scenario, first, last):
        new = ~seen[presences.devices]
        counts += np.bincount(presences.values[attribute][new], minlength=len(counts))
        seen[presences.devices] = True
    return counts


def _window(scenario: Scenario, first: int, last: int) -> Iterable[Presences]:
    return (scenario.presences(period) for period in range(first, last + 1))
