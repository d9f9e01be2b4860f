"""Alerts by Prometheus' own tool: they are valid, each fires where it must, and none where it must not."""

import re

from tests.deploy_test.workplace import DEPLOY, Workplace, require

MONITORING = DEPLOY / "monitoring"


def step(place: Workplace) -> str:
    checked = place.run("promtool", "check", "rules", MONITORING / "alerts.yaml", within=120)
    place.run("promtool", "check", "config", "--syntax-only", MONITORING / "prometheus.yaml", within=120)
    cases = MONITORING / "alerts.test.yaml"
    place.run("promtool", "test", "rules", cases, within=300)
    # A tool that finds every case right would find this one right, too.
    spoilt = place.path("monitoring", "alerts.test.yaml")
    spoilt.write_text(re.sub(r"exp_samples: \[\]", 'exp_samples: [{ labels: "{}", value: 1 }]', cases.read_text()))
    (spoilt.parent / "alerts.yaml").write_text((MONITORING / "alerts.yaml").read_text())
    wrong = place.tried("promtool", "test", "rules", spoilt, within=300)
    require(wrong.returncode != 0, "promtool accepts cases that are wrong")
    (count,) = re.findall(r"(\d+) rules found", checked)
    return f"{count} alerts, {cases.read_text().count('- name: ')} cases"
