"""Every alert has a case where it fires and one where it does not; `make deploy-test` lets Prometheus decide them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.deploy.test_deploy import ALERTS, DEPLOY

CASES: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "monitoring" / "alerts.test.yaml").read_text())["tests"]
NAMES = [rule["alert"] for rule in ALERTS]


@pytest.mark.parametrize("alert", NAMES)
def test_an_alert_has_a_case_where_it_fires_and_one_where_it_does_not(alert: str) -> None:
    for does in ("fires", "does not fire"):
        found = [case for case in CASES if case["name"] == f"{alert} {does}"]
        assert found, f"write a case {f'{alert} {does}'!r} in deploy/monitoring/alerts.test.yaml"
        for case in found:
            (asked,) = case["promql_expr_test"]
            assert asked["expr"] == f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
            assert case["input_series"], "an alert that never sees a number proves nothing"
            assert [sample["value"] for sample in asked["exp_samples"]] == ([1] if does == "fires" else [])


def test_no_case_is_of_an_alert_that_does_not_exist() -> None:
    assert {case["name"].split()[0] for case in CASES} == set(NAMES)
