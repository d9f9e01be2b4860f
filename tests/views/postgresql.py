"""A real PostgreSQL server for tests: on this machine, at a free port, in a directory that goes with it."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from servers.ports import free_port

USER = "hearsay"
START_SECONDS = 60.0
STOP_SECONDS = 30.0


def program(name: str) -> Path | None:
    """A program of the server. Debian has them in a directory for each version, which is not on the path."""
    found = shutil.which(name)
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return Path(found) if found else versions[-1] if versions else None


def unprivileged() -> dict[str, Any]:
    """As whom the server runs: it refuses to run as root."""
    if os.geteuid():
        return {}
    users = {user.pw_name: user for user in pwd.getpwall()}
    user = users.get("postgres") or users["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def running() -> Iterator[str]:
    """A server for the time of the block: the address of its database."""
    initdb, postgres = program("initdb"), program("postgres")
    assert initdb is not None and postgres is not None
    who = unprivileged()
    with tempfile.TemporaryDirectory(prefix="hearsay-postgresql-", ignore_cleanup_errors=True) as name:
        if who:
            os.chown(name, who["user"], who["group"])
        data, port = Path(name) / "data", free_port()
        made = [str(initdb), "--auth=trust", f"--username={USER}", "--no-sync", "--encoding=UTF8", "--locale=C"]
        subprocess.run([*made, str(data)], check=True, capture_output=True, timeout=START_SECONDS, cwd=name, **who)
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off"}
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        with (Path(name) / "log").open("wb") as log:
            server = subprocess.Popen(
                [str(postgres), "-D", str(data), *options], stdout=log, stderr=log, cwd=name, **who
            )
        try:
            address = f"postgresql://{USER}@127.0.0.1:{port}/postgres"
            wait(server, address, Path(name) / "log")
            yield address
        finally:
            stop(server)


def wait(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(address, connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            ended, late = server.poll() is not None, time.monotonic() > deadline
            assert not ended and not late, f"PostgreSQL did not start:\n{log.read_text(errors='replace')[-2000:]}"
            time.sleep(0.05)


def stop(server: subprocess.Popen[bytes]) -> None:
    """First let it end its sessions, then without asking them."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(number)
        try:
            server.wait(STOP_SECONDS)
            return
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"PostgreSQL (process {server.pid}) does not end")
