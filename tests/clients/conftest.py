"""Each library in turn."""

import pytest

from tests.clients.libraries import LIBRARIES


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> str:
    return str(request.param)
