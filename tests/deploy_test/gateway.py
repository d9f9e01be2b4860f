"""Reports through the gateway's container, over HTTP and with a bearer token, while the container is killed."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from random import Random

from servers.settings import KafkaSettings
from stream_app.kafka import Topics
from tests.deploy_test.cluster import Cluster
from tests.deploy_test.workplace import StepFailed, require
from tests.helpers.gateways import reports_of
from tests.helpers.recount import logged
from tests.stream_app.worlds import Reports

REPORTS, IN_A_REQUEST = 4000, 100
PATIENCE_SECONDS = 180.0
Sent = set[tuple[int, int]]  # period and token


def report(running: Cluster, token: str) -> Sent:
    """Send reports, a hundred in a request, and the same again until they are confirmed; kill the gateway meanwhile."""
    (container,) = running.containers("gateway")
    require(post(running, "a wrong one", [])[0] == 401, "a gateway takes reports without a token that it knows")
    every = list(reports_of(Random(11), REPORTS))
    requests = [every[at : at + IN_A_REQUEST] for at in range(0, REPORTS, IN_A_REQUEST)]
    taken: Sent = set()
    for number, reports in enumerate(requests):
        if number == len(requests) // 2:
            running.kill(container)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (answer := post(running, token, reports))[0] != 201:
            if answer[0] not in (0, 503) or time.monotonic() > deadline:
                raise StepFailed(f"the gateway answers {answer} instead of 201")
            if running.state(container) != "running":
                running.start_again(container)
            time.sleep(0.2)
        taken |= {(int(each["period"], 16), int(each["token"], 16)) for each in reports}
    return taken


def all_there(kafka: KafkaSettings, topics: Topics, taken: Sent) -> None:
    """Every confirmed report is on the reports topic; the recount of the topic shows that it counts once."""
    events = (event for partition in logged(kafka, topics) for event in partition.values())
    there = {(event.period, row.token) for event in events if isinstance(event, Reports) for row in event.rows}
    require(len(taken) == REPORTS and taken <= there, f"{len(taken - there)} reports that were confirmed are missing")


def post(running: Cluster, token: str, reports: list[dict[str, object]]) -> tuple[int, str]:
    """The status of an answer and its text; 0 if there was none."""
    address = f"http://127.0.0.1:{running.ports['gateway']}/v1/reports"
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    request = urllib.request.Request(address, json.dumps(reports).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)
