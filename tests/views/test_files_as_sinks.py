"""Sinks that are files: readers do not hold them up, and both kinds have the same rows."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.views.test_sinks import parquet_content, sqlite_content
from tests.views.trials import World
from views.runner import backfill
from views.sinks import open_sink


def test_a_reader_in_the_middle_of_reading_does_not_hold_up_the_sink(tmp_path: Path) -> None:
    file = tmp_path / "results.sqlite"
    with closing(open_sink(f"sqlite:{file}")) as sink, closing(sqlite3.connect(file)) as reader:
        backfill(World(periods=1), sink)
        (table,) = reader.execute("SELECT name FROM sqlite_master WHERE name LIKE 'histograms_v%'").fetchone()
        periods = f"SELECT count(DISTINCT period) FROM {table}"
        reader.execute("BEGIN")
        assert reader.execute(periods).fetchone() == (1,)
        backfill(World(periods=2), sink)
        assert reader.execute(periods).fetchone() == (1,), "a reader sees one state of the file"
        reader.execute("COMMIT")
        assert reader.execute(periods).fetchone() == (2,)


def test_files_of_both_kinds_have_the_same_rows_and_say_through_which_period(tmp_path: Path) -> None:
    world = World(periods=3)
    for address in (f"sqlite:{tmp_path}/all.sqlite", f"parquet:{tmp_path}/all"):
        with closing(open_sink(address)) as sink:
            assert backfill(world, sink) == 3
            assert sink.complete() == {"town": 2}
    assert parquet_content(tmp_path / "all") == sqlite_content(tmp_path / "all.sqlite")
