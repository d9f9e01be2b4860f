"""`compose up`: a survey collected through containers, one of them killed, and everything counted again offline."""

import http.client
import json
import shutil
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from random import Random
from typing import Any

from servers.settings import KafkaSettings
from stream_app.finals import FinalKey
from stream_app.kafka import Topics, existing, read_topic
from stream_app.local import LocalStore
from tests.deploy_test.cluster import Cluster, cluster, steps
from tests.deploy_test.workplace import DEPLOY, StepFailed, Workplace, require, wait
from tests.helpers.counting import Counting
from tests.helpers.gateways import reports_of
from tests.helpers.recount import histograms_of, logged, recount
from tests.helpers.traffic import traffic
from tests.stream_app.worlds import KEY, SCHEME, Reports
from views.results import HISTOGRAMS, MOBILITY

REPORTS, PERIODS, DEVICES = 60_000, 6, 600
COUNT_SECONDS = 300.0
SCRAPE_SECONDS = 120.0
OVER_HTTP, IN_A_REQUEST = 4000, 100
PATIENCE_SECONDS = 180.0
Sent = set[tuple[int, int]]  # period and token


def step(place: Workplace) -> str:
    with cluster(place, KEY) as running:
        running.up("kafka", "redis")
        running.up("topics")
        running.finished(*running.containers("topics"))
        survey = running.directory / "surveys" / "survey.yaml"
        survey.write_text(SCHEME.survey.model_dump_json())  # JSON is YAML
        keys, publish = (words for words in steps()[1] if words[0] in ("exec", "run"))
        running.compose(*publish[:2], "--no-deps", "-T", *publish[2:])
        token = new_token(running)
        running.up("worker", "gateway", "dashboard", "prometheus")
        running.compose(keys[0], "-T", *keys[1:])
        taken = report_over_http(running, token)
        counted = collect(running, taken)
        demo(running)
        scraped = prometheus(running)
    exact = f"{counted:,} reports counted once with a gateway and a worker killed, {len(taken):,} of them over HTTP"
    return f"{exact}; demo as in one process; {scraped}"


def new_token(running: Cluster) -> str:
    """A token of an edge, made as an operator makes it."""
    tokens = running.directory / "tokens"
    made = hearsay(running, "gateway", "token", "new", "--role", "edge", "--json", "--file", str(tokens))
    tokens.chmod(0o640)
    return str(json.loads(made)["token"])


def collect(running: Cluster, taken: Sent) -> int:
    """Send more reports and everything else while a worker is killed; returns how many reports the finals have."""
    kafka = KafkaSettings(bootstrap=running.bootstrap)
    counting = Counting(kafka, existing(kafka), running.directory)
    log = list(traffic(Random(7), REPORTS, PERIODS, counting.topics.partitions))
    victim, *others = running.containers("worker")
    require(others, "there is only one worker")
    half = len(log) // 2
    counting.put(log[:half])
    running.kill(victim)
    counting.put(log[half:])
    running.start_again(victim)
    wait(lambda: len(counting.finals()) >= PERIODS, COUNT_SECONDS, f"{PERIODS} final periods")
    all_there(counting, taken)
    expected = recount(counting)
    finals = counting.finals()
    wanted = {FinalKey(*key): final for key, final in histograms_of(expected).items()}
    wrong = sorted(key for key in wanted.keys() | finals.keys() if wanted.get(key) != finals.get(key))
    require(not wrong, f"the finals of {wrong} are not what a recount of the reports topic gives")
    letters = {record.key.decode() for record in counting.read(counting.topics.deadletters)}
    require(letters == set().union(*expected.letters), "the dead letters are not the records that a recount refuses")
    return sum(counts["n", gap] for counts in expected.finals.values() for gap in range(1, 4))


def demo(running: Cluster) -> None:
    """The demo through containers of Kafka, Redis and workers publishes the same bytes as the demo in one process."""
    alone, there = running.place.path("alone"), running.place.path("clustered")
    hearsay(running, "demo", "--devices", str(DEVICES), "--data", str(alone))
    there.mkdir()
    shutil.copy2(alone / "fleet.key", there / "fleet.key")  # the same devices
    redis = f"redis://127.0.0.1:{running.ports['redis']}"
    told = {"HEARSAY_REDIS_URL": redis, "HEARSAY_CLOCK_KEY": KEY.hex()}
    hearsay(running, "memo", "accept-loss", "--nothing-lost", **told)
    words = ("demo", "--devices", str(DEVICES), "--data", str(there), "--kafka", running.bootstrap)
    hearsay(running, *words, **told)
    kafka, store = KafkaSettings(bootstrap=running.bootstrap), LocalStore.existing(alone / "collector")
    for topic in (HISTOGRAMS, MOBILITY):
        records = read_topic(kafka, Topics().named(topic.name))
        found = {record.key: record.value for record in records if record.key.startswith(b"festival-week")}
        wanted = {message.key: message.value for message in store.messages(topic.name)}
        require(wanted and found == wanted, f"{topic.name} of the demo differ from those of a run in one process")


def prometheus(running: Cluster) -> str:
    """Prometheus finds every worker and the gateway by their names, scrapes them, and evaluates every alert."""
    workers = len(running.containers("worker"))

    def scraped() -> bool:
        both = [f'count(up{{job="{job}"}} == 1)' for job in ("hearsay", "hearsay-gateway")]
        return [ask(running, "query", query=each) for each in both] == [[str(workers)], ["1"]]

    wait(scraped, SCRAPE_SECONDS, f"{workers} scraped workers and a scraped gateway")
    lag = 'sum(hearsay_lag_records{topic="hearsay.reports"})'
    wait(lambda: ask(running, "query", query=lag) == ["0"], SCRAPE_SECONDS, "lag of 0, although everything is counted")
    wait(lambda: bool(rules(running)) and not unhealthy(running), SCRAPE_SECONDS, "alerts that are evaluated")
    require(len(rules(running)) == alerts_in_file(), "Prometheus has not read every alert")
    firing = sorted(rule["name"] for rule in rules(running) if rule["state"] == "firing")
    # The reports that are sent here have forged clock records, and answers of no honest device.
    expected = {"HearsayForgedClock", "HearsayContradicted"}
    require(set(firing) <= expected, f"alerts fire although all is well: {firing}")
    found = f"Prometheus scrapes {workers} workers and a gateway"
    return f"{found}, and evaluates {len(rules(running))} alerts and {dashboard(running)} panels"


def dashboard(running: Cluster) -> int:
    """Every panel of the dashboard asks Prometheus something that it can answer, with numbers where there are any."""
    panels = json.loads((DEPLOY / "monitoring" / "dashboard.json").read_text())["panels"]
    # Every period is closed, nothing is lost or quarantined, no survey here has forecasts, and the gateway was started
    # again after it refused something.
    quiet = {
        "Open periods",
        "Tokens of open periods",
        "Not read on, and lost",
        "Surveys that are quarantined, and refused results",
    }
    quiet |= {"Numbers outside of their forecast", "Requests that gateways refuse"}
    # A rate needs two scrapes.
    wait(lambda: not empty(running, panels) - quiet, SCRAPE_SECONDS, f"numbers in all panels but {sorted(quiet)}")
    return len(panels)


def empty(running: Cluster, panels: list[dict[str, Any]]) -> set[str]:
    """The panels for which Prometheus has no number."""
    found = set()
    for panel in panels:
        asked = [
            target["expr"].replace("$survey", ".*").replace("$__rate_interval", "5m") for target in panel["targets"]
        ]
        answers = [ask(running, "query", query=expression) for expression in asked]
        if not any(answers):
            found.add(panel["title"])
    return found


def rules(running: Cluster) -> list[dict[str, Any]]:
    return [rule for group in get(running, "rules")["groups"] for rule in group["rules"]]


def unhealthy(running: Cluster) -> list[str]:
    return [rule["name"] for rule in rules(running) if rule["health"] != "ok"]


def alerts_in_file() -> int:
    return (DEPLOY / "monitoring" / "alerts.yaml").read_text().count("- alert: ")


def ask(running: Cluster, page: str, **words: str) -> list[str]:
    return [sample["value"][1] for sample in get(running, page, **words)["result"]]


def get(running: Cluster, page: str, **words: str) -> Any:
    address = f"http://127.0.0.1:{running.ports['prometheus']}/api/v1/{page}?{urllib.parse.urlencode(words)}"
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        raise StepFailed(f"Prometheus refuses {words}: {error.read().decode(errors='replace')}") from None
    except OSError:  # it is starting
        return {"groups": [], "result": []}


def hearsay(running: Cluster, *words: str, **environment: str) -> str:
    python = Path(sys.executable)
    return running.place.run(python, "-m", "hearsay", *words, within=COUNT_SECONDS, environment=environment)


def report_over_http(running: Cluster, token: str) -> Sent:
    """Send reports, a hundred in a request, and the same again until they are confirmed; kill the gateway meanwhile."""
    (container,) = running.containers("gateway")
    require(post(running, "a wrong one", [])[0] == 401, "a gateway takes reports without a token that it knows")
    every = list(reports_of(Random(11), OVER_HTTP))
    requests = [every[at : at + IN_A_REQUEST] for at in range(0, OVER_HTTP, IN_A_REQUEST)]
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


def all_there(counting: Counting, taken: Sent) -> None:
    """Every confirmed report is on the reports topic; the recount of the topic shows that it counts once."""
    events = (event for partition in logged(counting) for event in partition.values())
    there = {(event.period, row.token) for event in events if isinstance(event, Reports) for row in event.rows}
    require(len(taken) == OVER_HTTP and taken <= there, f"{len(taken - there)} reports that were confirmed are missing")


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
