"""A PostgreSQL server, for the tests that need one: at a free port, in a directory that goes with it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from servers.ports import free_port

PATIENCE_SECONDS = 60.0
MAKING = "--auth=trust --username=hearsay --no-sync --encoding=UTF8 --locale=C"


def control_program() -> str:
    """Debian has it in a directory for each version, which is not on the path. Skips the test where there is none."""
    versions = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")))
    found = [found for found in [*versions, shutil.which("pg_ctl")] if found]
    if not found:
        pytest.skip("no PostgreSQL server here: on Debian, `make servers` installs the package postgresql")
    return found[-1]


def unprivileged() -> dict[str, Any]:
    """As whom the server runs: it refuses to run as root."""
    if os.geteuid():
        return {}
    users = {user.pw_name: user for user in pwd.getpwall()}
    user = users.get("postgres") or users["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The address of a running server."""
    who, port = unprivileged(), free_port()
    with tempfile.TemporaryDirectory(prefix="hearsay-postgresql-", ignore_cleanup_errors=True) as name:
        if who:
            os.chown(name, who["user"], who["group"])
        settings = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories='' -c fsync=off"

        def control(*words: str) -> None:
            command = [control_program(), "-D", f"{name}/data", "-s", *words]
            with Path(name, "control.log").open("ab") as log:
                subprocess.run(command, check=True, stdout=log, stderr=log, timeout=PATIENCE_SECONDS, cwd=name, **who)

        control("initdb", "-o", MAKING)
        control("start", "-w", "-l", f"{name}/log", "-o", settings)
        try:
            yield f"postgresql://hearsay@127.0.0.1:{port}/postgres"
        finally:
            control("stop", "-m", "fast")


_schemas = count()


@pytest.fixture
def database(postgresql_server: str) -> Callable[[str], str]:
    """Addresses by name: each has a schema of its own, which is empty when it is first asked for."""
    import psycopg  # takes half a second to import

    addresses: dict[str, str] = {}

    def address(name: str) -> str:
        if name not in addresses:
            schema = f"s{next(_schemas)}"
            with psycopg.connect(postgresql_server, autocommit=True) as db:
                db.execute(f"CREATE SCHEMA {schema}")
            addresses[name] = f"{postgresql_server}?options={quote(f'-csearch_path={schema}')}"
        return addresses[name]

    return address
