"""Whole commands in CPU seconds: `hearsay run` and `hearsay replay`, with all their processes, at growing sizes."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from math import log
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from bench._measuring import Goes, child_seconds, in_turns

ROOT = Path(__file__).resolve().parents[1]
DEVICES, PERIODS, VALUES = 20_000, 5, 16
MANY_DEVICES = 100_000
FAKES, APART = "eps: 2, solution: rs+fd", "eps_inf: 40, eps_1: 20, solution: spl"
GOES, NOISE = 5, 0.3
"""How often a command is run (the cheapest counts), and the CPU seconds by which two of the same differ."""
LINEAR, RUN_SECONDS = 1.1, 600
MOST_DEVICES = 1_000_000
CAPPED = "eps_inf: 4, eps_1: 2, memo_cap: 3"
EVENTS, EVENTS_A_DAY, DAYS = (1_000_000, 4_000_000), 2.5, 10
"""Of replays: events, how many of them a person has in a period, and periods."""


class Run(NamedTuple):
    """One run of a survey with attributes of the same size."""

    devices: int = DEVICES
    periods: int = PERIODS
    attributes: int = 1
    values: int = VALUES
    horizon: int = 7
    terms: str = "eps_inf: 4, eps_1: 2"
    mechanism: str = "auto"

    def survey(self) -> str:
        asked = ", ".join(
            f"{{name: a{i}, range: {{last: {self.values - 1}}}, mechanism: {self.mechanism}}}"
            for i in range(self.attributes)
        )
        return (
            f"{{id: growth, start: 2026-01-05T00:00:00Z, period: 1d, clock: source, {self.terms}, "
            f"horizon: {self.horizon}, attributes: [{asked}]}}"
        )


class Row(NamedTuple):
    """One thing that grows, in three sizes, of which the smallest is next to nothing; and the run of a size."""

    what: str
    sizes: tuple[int, int, int]
    run: Callable[[int], Run]
    wanted: float = LINEAR


GROWING = (
    Row("devices", (100, MOST_DEVICES // 3, MOST_DEVICES), lambda size: Run(devices=size)),
    Row("periods", (1, 18, 54), lambda size: Run(devices=MANY_DEVICES, periods=size)),
    Row("attributes, spl", (2, 15, 45), lambda d: Run(50_000, attributes=d, terms=APART)),
    Row("attributes, rs+fd", (2, 15, 45), lambda d: Run(50_000, attributes=d, terms=FAKES, mechanism="grr")),
    Row("values, direct answers", (10, 3_000, 9_000), lambda k: Run(MANY_DEVICES, values=k, mechanism="l-grr")),
    Row("values, bits", (10, 300, 900), lambda k: Run(MANY_DEVICES, values=k, mechanism="l-osue")),
)


def slope(costs: Sequence[float], sizes: Sequence[int]) -> float:
    """The power of the size with which costs grow, from three sizes, of which the smallest is next to nothing.

    What does not depend on the size is in all three, so it is what the larger two add that counts. What is below the
    noise counts as the noise.

    >>> round(slope((5.0, 5.0 + 4, 5.0 + 16), (0, 100, 200)), 6)
    2.0
    >>> round(slope((5.0 + 1, 5.0 + 31, 5.0 + 91), (1, 31, 91)), 6)
    1.0
    """
    less, more = (max(cost - costs[0], NOISE) for cost in costs[1:])
    return log(more / less) / log((sizes[2] - sizes[0]) / (sizes[1] - sizes[0]))


def in_noise(costs: Sequence[float]) -> bool:
    """Whether the smaller two sizes differ by too little for a slope to mean anything."""
    return costs[1] - costs[0] < NOISE


def run_seconds(*runs: Run, goes: int = GOES) -> Goes:
    """CPU seconds of `hearsay run`."""
    return in_turns(goes, *(partial(_run_seconds, one) for one in runs))


def _run_seconds(one: Run) -> float:
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-") as name:
        survey = Path(name) / "survey.yaml"
        survey.write_text(one.survey())
        return data_seconds("run", str(survey), "--devices", str(one.devices), "--periods", str(one.periods))


def replay_seconds(*sizes: int) -> Goes:
    """CPU seconds of `hearsay replay`, for so many events in the order of time."""
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-") as name:
        survey, files = Path(name) / "survey.yaml", [Path(name) / f"{events}.csv" for events in sizes]
        survey.write_text(Run().survey())
        for recorded, events in zip(files, sizes, strict=True):
            write_events(recorded, events)
        return in_turns(GOES, *(partial(data_seconds, "replay", str(file), "--survey", str(survey)) for file in files))


def write_events(path: Path, count: int, a_day: float = EVENTS_A_DAY) -> None:
    random = np.random.default_rng(1)
    seconds = np.sort(random.integers(0, DAYS * 86_400, count)).astype("timedelta64[s]")
    people = random.integers(0, round(count / a_day / DAYS), count)
    times = pa.array(np.datetime64("2026-01-05T00:00:00") + seconds).cast(pa.timestamp("s", "UTC"))
    columns = {"person": pa.array(people), "time": times, "a0": pa.array(people % VALUES)}
    pyarrow.csv.write_csv(pa.table(columns), path)


def data_seconds(*words: str, tree: Path = ROOT) -> float:
    """CPU seconds of a command in a new data directory."""
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-") as data:
        return command_seconds(*words, "--data", data, tree=tree)


def command_seconds(*words: str, tree: Path = ROOT) -> float:
    return child_seconds(lambda: python_output("-m", "hearsay", *words, tree=tree))


def python_output(*words: str, tree: Path = ROOT) -> str:
    """What Python prints with the modules of a tree. It keeps what it compiles, as it does by default."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env={**kept, "NO_COLOR": "1", "PYTHONPATH": str(tree)},  # for processes that it starts elsewhere, too
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
