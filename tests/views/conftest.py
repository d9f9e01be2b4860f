"""A PostgreSQL server, for the tests that need one."""

from collections.abc import Callable, Iterator
from itertools import count
from urllib.parse import quote

import psycopg
import pytest

from tests.views import postgresql


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The address of a running server."""
    if postgresql.program("initdb") is None:
        pytest.skip("no PostgreSQL server here: on Debian, `make servers` installs the package postgresql")
    with postgresql.running() as address:
        yield address


_schemas = count()


@pytest.fixture
def database(postgresql_server: str) -> Callable[[str], str]:
    """Addresses by name: each has a schema of its own, which is empty when it is first asked for."""
    addresses: dict[str, str] = {}

    def address(name: str) -> str:
        if name not in addresses:
            schema = f"s{next(_schemas)}"
            with psycopg.connect(postgresql_server, autocommit=True) as db:
                db.execute(f"CREATE SCHEMA {schema}")
            addresses[name] = f"{postgresql_server}?options={quote(f'-csearch_path={schema}')}"
        return addresses[name]

    return address
