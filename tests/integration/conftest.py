"""A broker with users and rights, for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.secured import Secured
from tests.helpers.secured import secured as secured_for_a_while


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A running broker that takes nobody without a certificate and a password."""
    with secured_for_a_while(tmp_path_factory.mktemp("secured")) as running:
        yield running
