"""Who can read what sinks write: files on the disk, and rows on their way to a database."""

import grp
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from protocols.errors import DeliveryError, SettingsError
from tests.helpers.certificates import Authority
from tests.helpers.eventually import eventually
from tests.views.trials import World
from views.runner import backfill
from views.sinks import open_sink, parquet
from views.sinks.postgresql_tls import sslmode_to_add

Database = Callable[[str], str]
OPEN_UMASK = 0
"""With it every mode that is not set stays as wide as it is asked for."""
HIDING_UMASK = 0o077


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(OPEN_UMASK)
    yield os.umask
    os.umask(before)


def modes(directory: Path) -> tuple[set[int], set[int]]:
    """The modes of the directories and of the files below a directory, and of itself."""
    of_directories = {stat.S_IMODE(directory.stat().st_mode)}
    of_files = set()
    for path in directory.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.is_dir():
            of_directories.add(mode)
        else:
            of_files.add(mode)
    return of_directories, of_files


def fill(address: str) -> None:
    with closing(open_sink(address)) as sink:
        assert backfill(World(), sink) == len(World().finals)


@pytest.fixture
def drafts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The mode of each file at the moment in which it has its content, and still another name."""
    found: list[int] = []
    sync = os.fsync

    def noting(descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            found.append(stat.S_IMODE(status.st_mode))
        sync(descriptor)

    monkeypatch.setattr(parquet.os, "fsync", noting)
    return found


@pytest.mark.usefixtures("umask")
def test_only_its_writer_may_read_what_a_parquet_sink_writes(tmp_path: Path, drafts: list[int]) -> None:
    """Failure would look like: results that every user of the machine reads, although all other files are private."""
    fill(f"parquet:{tmp_path}/new/tables")
    assert modes(tmp_path / "new") == ({0o700}, {0o600})
    assert drafts and set(drafts) == {0o600}


def test_a_group_that_the_address_names_may_read_and_nobody_else(
    tmp_path: Path, umask: Callable[[int], int], drafts: list[int]
) -> None:
    umask(HIDING_UMASK)
    group = another_group()
    fill(f"parquet:{tmp_path}/new/tables?group={grp.getgrgid(group).gr_name}")
    assert modes(tmp_path / "new") == ({0o750}, {0o640})
    assert {path.stat().st_gid for path in (tmp_path / "new").rglob("*")} == {group}
    assert set(drafts) == {0o640}


def another_group() -> int:
    """A group of which this user is a member; not the one that its files have anyway, if there is another."""
    members = [entry.gr_gid for entry in grp.getgrall()] if os.geteuid() == 0 else os.getgroups()
    named = {entry.gr_gid for entry in grp.getgrall()}
    others = [group for group in members if group in named and group != os.getegid()]
    if not others and os.getegid() not in named:
        pytest.skip("this user is in no group that has a name")
    return others[0] if others else os.getegid()


def test_a_directory_that_was_there_stays_as_it_is(tmp_path: Path, umask: Callable[[int], int]) -> None:
    own = tmp_path / "own"
    own.mkdir(mode=0o755)
    fill(f"parquet:{own}")
    assert stat.S_IMODE(own.stat().st_mode) == 0o755
    assert {stat.S_IMODE(path.stat().st_mode) for path in own.rglob("*.parquet")} == {0o600}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("group=no-such-group-anywhere", "which this machine does not have"),
        ("group=", "behind its directory"),
        ("mode=644", "behind its directory"),
        ("", "behind its directory"),
    ],
)
def test_who_reads_is_not_guessed_at(tmp_path: Path, option: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        open_sink(f"parquet:{tmp_path}/tables?{option}")
    assert not (tmp_path / "tables").exists()


def test_a_group_of_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = grp.getgrgid(0).gr_name
    monkeypatch.setattr(parquet.os, "geteuid", lambda: 4711)
    monkeypatch.setattr(parquet.os, "getegid", lambda: 4711)
    monkeypatch.setattr(parquet.os, "getgroups", lambda: [4711])
    with pytest.raises(SettingsError, match="of which this user is no member"):
        open_sink(f"parquet:{tmp_path}/tables?group={name}")


@pytest.fixture
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("_no_variables")
@pytest.mark.parametrize(
    ("address", "variables", "added"),
    [
        ("postgresql://me@db.example/x", {}, "verify-full"),
        ("postgresql://me@0.0.0.0/x", {}, "verify-full"),
        ("postgresql://me@127.0.0.1,db.example/x", {}, "verify-full"),
        ("postgresql://me@localhost/x?hostaddr=192.0.2.7", {}, "verify-full"),
        ("postgresql://me@/x", {"PGHOST": "db.example"}, "verify-full"),
        ("postgresql:///x?service=far", {}, "verify-full"),
        ("postgresql://me@db.example/x?sslmode=require", {}, None),
        ("postgresql://me@db.example/x", {"PGSSLMODE": "prefer"}, None),
        ("postgresql://me@db.example/x", {"PGSSLMODE": "verify-ca"}, None),
        ("postgresql://me@127.0.0.1/x", {}, None),
        ("postgresql://me@[::1]/x", {}, None),
        ("postgresql://me@localhost/x", {}, None),
        ("postgresql://me@db.example/x?hostaddr=127.0.0.1", {}, None),
        ("postgresql://me@%2Frun%2Fpostgresql/x", {}, None),
        ("postgresql:///x", {}, None),
    ],
)
def test_a_server_elsewhere_must_show_a_certificate_unless_somebody_says_otherwise(
    address: str, variables: dict[str, str], added: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    psycopg = pytest.importorskip("psycopg")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert sslmode_to_add(address, psycopg) == added


def test_an_address_that_libpq_cannot_read_is_one_sentence() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(SettingsError, match=r"cannot be read: .*no_such_option"):
        open_sink("postgresql://me@127.0.0.1/x?no_such_option=1")


@pytest.mark.integration
@pytest.mark.usefixtures("_no_variables")
def test_a_sink_of_02_is_told_what_changed_and_a_certificate_lets_it_go_on(database: Database, tmp_path: Path) -> None:
    """Failure would look like: results that go to whoever answers at the address of the database.

    0.0.0.0 leads to the server on the loopback address, and is not one itself.
    """
    elsewhere = database("tls").replace("@127.0.0.1:", "@0.0.0.0:")
    with pytest.raises(DeliveryError, match="SSL") as told:
        open_sink(elsewhere)
    assert told.value.hint.startswith("since 0.3 the server's certificate is verified")
    assert f"{elsewhere}&sslmode=verify-full&sslrootcert=CA.pem" in told.value.hint
    open_sink(f"{elsewhere}&sslmode=prefer").close()

    authority, stranger = Authority(tmp_path / "ours"), Authority(tmp_path / "others", "stranger")
    with certificate_on(database("tls"), authority):
        open_sink(f"{elsewhere}&sslrootcert={authority.certificate}").close()
        with pytest.raises(DeliveryError, match="certificate verify failed") as told:
            open_sink(f"{elsewhere}&sslrootcert={stranger.certificate}")
        assert "sslmode=verify-full" in told.value.hint


class certificate_on:
    """The server at an address has a certificate for 0.0.0.0, for the time of the block."""

    def __init__(self, address: str, authority: Authority) -> None:
        import psycopg

        self._db = psycopg.connect(address, autocommit=True)
        row = self._db.execute("SHOW data_directory").fetchone()
        assert row is not None
        self._directory = Path(row[0])
        self._authority = authority

    def __enter__(self) -> None:
        issued = self._authority.issue("database", "0.0.0.0")
        owner = self._directory.stat()
        for file, name in zip(issued, ("server.crt", "server.key"), strict=True):
            place = self._directory / name
            shutil.copyfile(file, place)
            place.chmod(0o600)
            os.chown(place, owner.st_uid, owner.st_gid)
        self._set("ALTER SYSTEM SET ssl = on", "on")

    def __exit__(self, *error: object) -> None:
        self._set("ALTER SYSTEM RESET ssl", "off")
        self._db.close()

    def _set(self, statement: str, wanted: str) -> None:
        self._db.execute(statement)
        self._db.execute("SELECT pg_reload_conf()")
        eventually(lambda: self._db.execute("SHOW ssl").fetchone() == (wanted,))
