"""When devices of the JavaScript library send: what takes too long for its own tests."""

import pytest

from tests.helpers.node import node


@pytest.mark.long(part="clients")
def test_times_and_order_of_arrival_pair_no_reports_of_a_device() -> None:
    run = node("--test", "tests/apart.long.js")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "# pass 2" in run.stdout
