"""A new view and a new sink are one file and one line each: a copy of the rooms gets both, and commands know them."""

import json
import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import done
from tests.mutations.running import copy_checkout
from tests.test_structure import ROOT

VIEW = '''
"""How many reports a period has: as little as a view can say."""

from pydantic import BaseModel

from stream_app.log import TopicName
from views.past import Past
from views.view import View


class Size(BaseModel):
    schema_version: int = 1
    period: int
    kinds: int


def make(past: Past) -> Size:
    return Size(period=past.period, kinds=len(past.newest.counts))


SIZES = View(TopicName("sizes"), "size", Size, make)
'''
TOPIC = '    ResultTopic(TopicName("sizes"), "survey/period", "views.results.sizes:SIZES"),\n'
KIND = '    SinkKind("folder:PATH", "a file for each result", "views.sinks.folders:FolderSink"),\n'
SURVEY = """
{id: town, start: 2026-03-28T00:00Z, period: 1d, horizon: 2, eps_inf: 4, eps_1: 2, clock: source, minimum: 0,
 attributes: [{name: colour, values: [red, green, blue]}]}
"""


def insert(file: Path, after: str, line: str) -> None:
    before, found, rest = file.read_text().partition(after)
    assert found, f"{file} has no {after!r}"
    file.write_text(before + found + line + rest)


@pytest.mark.long(part="pages")
def test_a_view_and_a_sink_are_one_file_and_one_line_each(tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    copy_checkout(ROOT, rooms)
    (rooms / "views/results/sizes.py").write_text(VIEW)
    (rooms / "views/sinks/folders.py").write_text((ROOT / "tests/views/folders.py").read_text())
    insert(rooms / "stream_app/log/flushes.py", "RESULTS = (\n", TOPIC)
    insert(rooms / "views/sinks/sink.py", "SINKS = (\n", KIND)

    def hearsay(*words: str) -> str:
        return done(sys.executable, "-m", "hearsay", *words, directory=tmp_path, PYTHONPATH=str(rooms))

    (tmp_path / "town.yaml").write_text(SURVEY)
    hearsay("run", "town.yaml", "--devices", "200", "--periods", "3", "--data", "data")
    filled = json.loads(hearsay("sinks", "backfill", "--data", "data", "--to", "folder:out", "--json"))
    assert filled["complete"] == {"town": 2}
    sizes = [json.loads(file.read_text()) for file in sorted((tmp_path / "out").glob("town+*+size.json"))]
    assert sizes == [{"schema_version": 1, "period": period, "kinds": 1} for period in range(3)]
    assert len(list((tmp_path / "out").glob("town+*+histogram.json"))) == 3
