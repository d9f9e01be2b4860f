"""What is published does not change with the code that makes it: documents of the four examples, but for last digits.

`python -m tests.views.test_documents` writes those of today to tests/states/documents.json.xz.
"""

import gzip
import json
import lzma
import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hearsay.data_directory import DataDirectory
from hearsay.running.simulating import populate, simulate
from hearsay.survey_files import example
from protocols.survey import Survey
from stream_app.local import LocalStore
from stream_app.log.flushes import RESULTS

KEPT = Path(__file__).parents[1] / "states" / "documents.json.xz"
SCENARIOS = {  # by example: a scenario, its devices and its periods
    "mobility-week": ("virtual-humans", 400, 7),
    "telemetry": ("telemetry", 400, 9),
    "places": ("commuters", 200, 4),
    "demand-year": ("demand", 60, 130),
}
CHANGED = {
    # With a week, forecasts begin after a month. The other keys are as they were when the documents were kept.
    "demand-year": {"forecast": {"ahead": 24, "seasons": [24]}, "eps_inf": 4, "eps_1": 2, "memo_cap": None},
    "telemetry": {"eps_1": 1.5, "horizon": 7, "visitors": None, "central": None},
}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?e-?\d+|-?\d+\.\d+")
LAST = 12
"""How many documents of a topic are kept, the last ones."""


def documents(name: str) -> Mapping[str, str]:
    """By topic and key: the JSON that is published of one example."""
    scenario, devices, periods = SCENARIOS[name]
    survey = Survey.model_validate(example(name).model_dump() | {"minimum": 0} | CHANGED.get(name, {}))
    with TemporaryDirectory() as directory:
        data = DataDirectory(Path(directory) / name)
        data.root.mkdir()
        for key in ("fleet.key", "presence.key", "clock.key"):
            (data.root / key).write_text("5e" * 32)
        data.new_store_mark.touch()
        simulate(survey, populate(survey, scenario, devices, periods, seed=7), data.root)
        with closing(LocalStore.existing(data.collector)) as store:
            messages = [m for topic in RESULTS for m in list(store.messages(topic.name))[-LAST:]]
    return {f"{m.topic} {m.key.decode()}": gzip.decompress(m.value).decode() for m in messages}


@pytest.fixture(scope="module")
def kept() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(lzma.decompress(KEPT.read_bytes()))
    return found


LONG = {"demand-year": pytest.mark.long(part="statistics")}  # five days of hours, with forecasts


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in SCENARIOS])
def test_an_example_publishes_the_same_documents_as_ever(kept: dict[str, dict[str, str]], name: str) -> None:
    """Failure would look like: another digit, another order of keys, a document more or less."""
    made = documents(name)
    assert made.keys() == kept[name].keys()
    for key, then in kept[name].items():
        assert NUMBER.split(made[key]) == NUMBER.split(then), key
        now, before = (list(map(float, NUMBER.findall(text))) for text in (made[key], then))
        assert now == pytest.approx(before, rel=1e-9, abs=1e-12), key


if __name__ == "__main__":
    made = {name: documents(name) for name in SCENARIOS}
    KEPT.write_bytes(lzma.compress(json.dumps(made).encode(), preset=9))
