"""Sinks with tables: each passes the checks of the test kit, and refuses what it cannot do with a sentence."""

import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet
import pytest

from bench._processes import ServerProcess
from protocols.errors import DeliveryError, SettingsError
from stream_app.finals import FinalKey
from stream_app.kafka import KafkaMessages
from tests.helpers.counting import NewCounting
from tests.helpers.eventually import eventually
from tests.helpers.recount import histograms_of, recount
from tests.stream_app.worlds import SCHEME, Reports, Row, Tick
from tests.views.trials import World, check_sink
from views.past import Past
from views.results import HISTOGRAMS, MOBILITY
from views.runner import backfill
from views.sinks import open_sink
from views.view import all_views

Database = Callable[[str], str]


def test_an_sqlite_sink_is_complete_after_any_crash(tmp_path: Path) -> None:
    check_sink(
        lambda place: open_sink(f"sqlite:{tmp_path / place}.sqlite"),
        lambda place: sqlite_content(tmp_path / f"{place}.sqlite"),
    )


@pytest.mark.long(part="kills")
def test_a_parquet_sink_is_complete_after_any_crash(tmp_path: Path) -> None:
    check_sink(lambda place: open_sink(f"parquet:{tmp_path / place}"), lambda place: parquet_content(tmp_path / place))


@pytest.mark.long(part="kills")
@pytest.mark.integration
def test_a_postgresql_sink_is_complete_after_any_crash(database: Database) -> None:
    check_sink(lambda place: open_sink(database(place)), lambda place: postgresql_content(database(place)))


@pytest.mark.integration
def test_all_sinks_have_the_same_rows(tmp_path: Path, database: Database) -> None:
    addresses = [f"sqlite:{tmp_path}/all.sqlite", f"parquet:{tmp_path}/all", database("all")]
    for address in addresses:
        with closing(open_sink(address)) as sink:
            assert backfill(World(), sink) == len(World().finals)
            assert sink.complete() == {"town": 4}
    in_file = sqlite_content(tmp_path / "all.sqlite")
    assert parquet_content(tmp_path / "all") == postgresql_content(database("all")) == in_file


def test_tables_have_no_columns_that_only_readers_of_reports_fill() -> None:
    report = MOBILITY.make(Past(World().scheme, World().finals[-3:]))
    assert report is not None and MOBILITY.tables is not None
    listed = {
        name: {*next(iter(parts)).columns} for name, parts in MOBILITY.tables(report, World().scheme.survey).items()
    }
    assert {"visitors", "shortfall"} <= listed["visitors"] and {"share", "people"} <= listed["values"]
    assert not {"change", "change_against", "baseline", "truth"} & set.union(*listed.values())


def test_tables_of_another_version_are_new_and_filled_from_all_finals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, world = tmp_path / "results.sqlite", World()
    with closing(open_sink(f"sqlite:{file}")) as sink:
        backfill(world, sink)
    later = type("Later", (HISTOGRAMS.model,), {"__annotations__": {"schema_version": int}, "schema_version": 7})
    views = [replace(view, model=later, tables_version=0) if view is HISTOGRAMS else view for view in all_views()]
    with monkeypatch.context() as another:
        another.setattr("views.sinks.sink.all_views", lambda: views)
        with closing(open_sink(f"sqlite:{file}")) as sink:
            assert not sink.complete()
    with closing(open_sink(f"sqlite:{file}")) as sink:
        assert sink.complete() == {"town": 4}  # what was there is there


def test_a_table_with_other_columns_is_not_written_to(tmp_path: Path) -> None:
    file = tmp_path / "results.sqlite"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE histograms_v5 (survey TEXT, period INTEGER, mine TEXT)")
    with closing(open_sink(f"sqlite:{file}")) as sink:
        with pytest.raises(DeliveryError, match=r"histograms_v5 of .* has other columns"):
            backfill(World(), sink)
        assert sink.complete() == {}


def test_what_cannot_be_a_sink_is_refused_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_text("this is no database, although it is long enough to be looked at" * 20)
    with closing(sqlite3.connect(tmp_path / "others.sqlite")) as db:
        db.execute("PRAGMA user_version = 7")
    for address, error, words in [
        ("csv:here", SettingsError, "no sink"),
        ("sqlite:", SettingsError, "no sink"),
        (f"sqlite:{tmp_path}/text", DeliveryError, "not a database"),
        (f"sqlite:{tmp_path}/others.sqlite", DeliveryError, "another program"),
        (f"sqlite:{tmp_path}/text/below/it", DeliveryError, "cannot be written"),
        (f"parquet:{tmp_path}/text", DeliveryError, "cannot be written"),
        ("postgresql://me:secret@127.0.0.1/x", SettingsError, "password"),
        ("postgresql://me@127.0.0.1:1/x", DeliveryError, "cannot be written"),
    ]:
        with pytest.raises(error, match=words) as refused:
            open_sink(address)
        assert "secret" not in str(refused.value)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingsError, match=r"driver .* not installed"):
        open_sink("postgresql://me@127.0.0.1/x")


PERIODS, SEED = 8, 36
LAST_SECONDS = 300.0


@pytest.mark.integration
@pytest.mark.xdist_group("kafka")
@pytest.mark.long(part="kills")
def test_every_sink_is_equal_to_the_finals_after_kills_of_workers_and_runners(
    new_counting: NewCounting,
    database: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Failure would look like: rows that are there twice or not at all, or a period that no sink gets any more."""
    counting, random = new_counting(SCHEME, partitions=2, merge_partitions=1), Random(SEED)
    sinks = [f"sqlite:{tmp_path}/all.sqlite", f"parquet:{tmp_path}/all", database("killed")]
    monkeypatch.setenv("HEARSAY_SINKS", sinks[0])  # the others are filled by `hearsay views` alone
    monkeypatch.setenv("HEARSAY_KAFKA_BOOTSTRAP", counting.kafka.bootstrap)
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", counting.topics.prefix)
    options = [word for sink in ("topics", *sinks) for word in ("--to", sink)]
    runner = ServerProcess(tmp_path / "views.log", 0, "-m", "hearsay", "views", *options).start()
    with counting.workers(2) as group, ExitStack() as ending:
        ending.callback(runner.kill)
        group[0].wait_until_ready()
        for period in range(PERIODS):
            rows = tuple(Row(token, 1 + token % 3, token % 3, token) for token in range(1, 100 + random.randrange(100)))
            counting.send([Reports(period, rows), Tick(period)])
            time.sleep(random.uniform(0, 4))
            for victim in random.sample([*group, runner], 2):
                victim.kill()
                time.sleep(random.uniform(0, 1))
                victim.start()

        def reached() -> list[int]:
            found = []
            for sink in sinks:
                with closing(open_sink(sink)) as opened:
                    found.append(opened.complete().get("s", -1))
            return found

        eventually(lambda: reached() == [PERIODS - 1] * len(sinks), LAST_SECONDS)
        counting.until_final(PERIODS, LAST_SECONDS)
    assert counting.finals() == histograms_of(recount(counting))
    with closing(open_sink(f"sqlite:{tmp_path}/anew.sqlite")) as anew:
        assert backfill(KafkaMessages(counting.kafka, counting.topics), anew) == PERIODS
    expected = sqlite_content(tmp_path / "anew.sqlite")
    assert len(expected) == PERIODS
    assert sqlite_content(tmp_path / "all.sqlite") == expected
    assert parquet_content(tmp_path / "all") == expected
    assert postgresql_content(database("killed")) == expected


# What is in sinks: their contents by survey and period, read with nothing of ours.
Content = Mapping[FinalKey, Any]


def sqlite_content(path: Path) -> Content:
    """By survey and period: the rows of each table, sorted."""
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return by_period({name: _rows(db, name) for name in names if not name.startswith("reached")})


def postgresql_content(address: str) -> Content:
    import psycopg

    with psycopg.connect(address) as db:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        names = [name for (name,) in db.execute(query).fetchall()]
        return by_period({name: _rows(db, name) for name in names if not name.startswith("reached")})


def parquet_content(directory: Path) -> Content:
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in directory.glob("*/survey=*/date=*/[!.]*.parquet"):
        survey = file.parts[-3].removeprefix("survey=")
        rows = pyarrow.parquet.ParquetFile(file).read().to_pylist()
        tables[file.parts[-4]] += [{"survey": survey, **row} for row in rows]
    return by_period(tables)


def _rows(db: Any, table: str) -> list[dict[str, Any]]:
    cursor = db.execute(f'SELECT * FROM "{table}"')
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def by_period(tables: Mapping[str, list[dict[str, Any]]]) -> Content:
    found: dict[FinalKey, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, rows in tables.items():
        for row in rows:
            plain = sorted((column, _plain(entry)) for column, entry in row.items())
            found[FinalKey(row["survey"], row["period"])][name].append(repr(plain))
    return {key: {name: sorted(rows) for name, rows in of_key.items()} for key, of_key in found.items()}


def _plain(entry: Any) -> Any:
    """Times as text in UTC, and true and false as numbers: SQLite has no other."""
    if isinstance(entry, datetime):
        return f"{entry.astimezone(UTC):%F %T}"
    return int(entry) if isinstance(entry, bool) else entry
