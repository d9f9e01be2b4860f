"""Image, compose file, manifests, overlays, alerts and dashboard name what there is: settings, commands, metrics."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from gateway.service import Metrics
from gateway.service.answers import Outcome
from hearsay.commands.operations.doctor import named_settings
from hearsay.commands.operations.topics import resources
from hearsay.serving.worker import worker_pages
from producers.edge import parse_edge
from protocols.survey_text import parse_survey
from protocols.wire import Reason
from servers.distribution import DISTRIBUTION
from servers.settings import KafkaSettings, Settings
from stream_app.faust_app import monitoring as metrics
from stream_app.faust_app.monitoring import Health
from stream_app.kafka import Topics, roles
from tests.deploy_test.cluster import steps
from tests.helpers.command_line import parsed

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = ("strimzi", "tls")


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.load_all(path.read_text(), yaml.CSafeLoader) if document]


def document(path: Path) -> dict[str, Any]:
    (found,) = documents(path)
    return found


def kustomization(overlay: str) -> dict[str, Any]:
    return document(KUBERNETES / overlay / "kustomization.yaml")


COMPOSE = document(DEPLOY / "compose" / "compose.yaml")
PATHS = sorted(path for path in (KUBERNETES / "base").glob("*.yaml") if path.name != "kustomization.yaml")
MANIFESTS = [manifest for path in PATHS for manifest in documents(path)]
ALERTS = [rule for group in document(DEPLOY / "monitoring" / "alerts.yaml")["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((DEPLOY / "monitoring" / "dashboard.json").read_text())
WORKLOADS = [manifest for manifest in MANIFESTS if "template" in manifest.get("spec", {})]
PODS = {manifest["metadata"]["name"]: manifest["spec"]["template"]["spec"] for manifest in WORKLOADS}
DOCKERFILE = (DEPLOY / "container" / "Dockerfile").read_text()
CASES: list[dict[str, Any]] = document(DEPLOY / "monitoring" / "alerts.test.yaml")["tests"]
NAMES = [rule["alert"] for rule in ALERTS]


def ours() -> dict[str, dict[str, Any]]:
    """The services of the compose file that run our image."""
    return {name: service for name, service in COMPOSE["services"].items() if image_of(service) == "hearsay"}


def image_of(service: dict[str, Any]) -> str:
    """The image of a service, where no parameter names another."""
    (default,) = re.findall(r"^\$\{IMAGE_[A-Z]+:-(.+)\}$", service["image"])
    return str(default)


def expressions() -> list[str]:
    shown = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    asked = [variable["query"] for variable in DASHBOARD["templating"]["list"] if variable["type"] == "query"]
    return [rule["expr"] for rule in ALERTS] + shown + asked


def settings() -> set[str]:
    return {name for name, _ in named_settings(Settings())}


def exported() -> dict[str, set[str]]:
    """The labels of every metric that workers and gateways export, with the endings that Prometheus gives them."""
    state = metrics.StateCollector(list, {}.get)
    gateway = Metrics()
    families = [*metrics.REGISTRY.collect(), *state.collect(), *gateway.registry.collect()]
    endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
    labels = {family.name: set(getattr(family, "_labelnames", ())) for family in families}
    for metric in [*vars(metrics).values(), *vars(gateway).values()]:
        if isinstance(metric, MetricWrapperBase):
            labels[metric._name] = set(metric._labelnames)
    return {
        family.name + ending: labels[family.name] | ({"le"} if ending == "_bucket" else set())
        for family in families
        for ending in endings.get(family.type, [""])
    }


def told(pod: dict[str, Any]) -> dict[str, str]:
    """The settings of a pod: those that all have, and its own."""
    (container,) = pod["containers"]
    maps = {manifest["metadata"]["name"]: manifest["data"] for manifest in MANIFESTS if manifest["kind"] == "ConfigMap"}
    shared = {
        name: value for source in container["envFrom"] for name, value in maps[source["configMapRef"]["name"]].items()
    }
    return shared | {variable["name"]: variable["value"] for variable in container["env"]}


def test_every_setting_that_is_given_exists() -> None:
    given = {name for service in ours().values() for name in service["environment"]}
    given |= {name for pod in PODS.values() for name in told(pod)}
    assert "HEARSAY_CLOCK_KEY_FILE" in given
    assert given <= settings()


def test_settings_that_name_files_name_what_is_mounted() -> None:
    for name, service in ours().items():
        given = [*service["environment"].values(), *service["command"]]
        files = {Path(value).name for value in given if str(value).startswith("/run/secrets/")}
        assert files == set(service.get("secrets", [])), name
        assert files <= set(COMPOSE["secrets"]), name
    readme = (DEPLOY / "kubernetes" / "README.md").read_text()
    for name, pod in PODS.items():
        (container,) = pod["containers"]
        (place,) = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "secrets"]
        files = {value for value in [*told(pod).values(), *container["args"]] if value.startswith(place)}
        (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "secrets"]
        sources = [source["secret"] for source in volume["projected"]["sources"]]
        assert files == {f"{place}/{item['path']}" for source in sources for item in source["items"]}, name
        for source in sources:
            (created,) = re.findall(rf"create secret generic {source['name']} (.*?)(?:\n\S|$)", readme, re.DOTALL)
            for item in source["items"]:
                assert re.search(rf"--from-(literal|file)={re.escape(item['key'])}(=|\b)", created), source["name"]


def test_each_gateway_has_the_keys_of_credentials_on_a_volume_of_its_own_and_in_no_secret() -> None:
    (gateway,) = [manifest for manifest in MANIFESTS if manifest["kind"] == "StatefulSet"]
    (container,), (claim,) = gateway["spec"]["template"]["spec"]["containers"], gateway["spec"]["volumeClaimTemplates"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == claim["metadata"]["name"]]
    (volume,) = COMPOSE["services"]["gateway"]["volumes"]
    for words, place in ((container["args"], mount["mountPath"]), (ours()["gateway"]["command"], volume.split(":")[1])):
        assert Path(words[words.index("--state") + 1]).parent == Path(place)
        assert f"--mode 0700 {place}\n" in DOCKERFILE  # a new volume of compose has the owner and mode of the image's
    assert "ro" not in volume.split(":") and not mount.get("readOnly")


def test_gateways_on_kubernetes_pull_from_a_service_that_leads_to_a_port_where_one_gives_keys() -> None:
    gateway, keeper = base("StatefulSet", "hearsay-gateway"), base("Service", "hearsay-keeper")
    (container,) = gateway["spec"]["template"]["spec"]["containers"]
    words = container["args"]
    (port,) = keeper["spec"]["ports"]
    assert words[words.index("--pull") + 1] == f"https://hearsay-keeper:{port['port']}"
    served = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
    assert served[port["targetPort"]] == words[words.index("--peer-port") + 1]
    assert keeper["spec"]["selector"] == {"statefulset.kubernetes.io/pod-name": "hearsay-gateway-0"}
    policy = base("NetworkPolicy", "hearsay-gateway-keys")["spec"]
    (out,) = policy["egress"]
    assert out["ports"] == policy["ingress"][0]["ports"] and out["to"] == policy["ingress"][0]["from"]
    readme = (DEPLOY / "kubernetes" / "README.md").read_text()
    assert f"-subj /CN={words[words.index('--peer') + 1]} -addext subjectAltName=DNS:hearsay-keeper" in readme


def test_only_those_who_close_periods_have_the_operators_keys() -> None:
    keys = {"HEARSAY_CLOCK_KEY_FILE", "HEARSAY_PRESENCE_KEY_FILE"}
    assert {name for name, pod in PODS.items() if keys & told(pod).keys()} == {"hearsay-worker"}
    assert {name for name, service in ours().items() if keys & service["environment"].keys()} == {"worker", "edge"}


def test_every_command_is_one_of_ours() -> None:
    image = json.loads(re.findall(r"^CMD (.*)$", DOCKERFILE, flags=re.MULTILINE)[0])
    calls = [image, *(service["command"] for service in ours().values())]
    calls += [container["args"] for pod in PODS.values() for container in pod["containers"]]
    assert len(calls) == 1 + 5 + 4
    for call in calls:
        parsed(call)


def test_the_steps_of_the_page_start_what_there_is_and_leave_no_secret_to_everybody(tmp_path: Path) -> None:
    shell, calls = steps()
    assert [words[0] for words in calls] == ["up", "exec", "run", "--profile"]
    assert {calls[1][1], calls[2][2]} <= COMPOSE["services"].keys()
    assert calls[3][1] in COMPOSE["services"]["prometheus"]["profiles"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = "\n".join(shell)
    subprocess.run(["bash", "-ec", script], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True, timeout=60)
    secrets = {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()}
    assert {path.name: oct(path.stat().st_mode)[-3:] for path in tmp_path.iterdir()} == {
        **dict.fromkeys(secrets, "640"),
        ".env": "600",
    }
    assert all(str(service["group_add"]).startswith("['${SECRETS_GROUP:?") for service in ours().values())


def test_probes_ask_for_pages_that_there_are() -> None:
    served = {name: pod["containers"][0] for name, pod in PODS.items() if name != "hearsay-topics"}
    assert served.keys() == {"hearsay-worker", "hearsay-gateway", "hearsay-dashboard"}
    for name, container in served.items():
        probes = {name: probe for name, probe in container.items() if name.endswith("Probe")}
        asked = {name: probe["httpGet"]["path"] for name, probe in probes.items() if "httpGet" in probe}
        alive = {} if name == "hearsay-dashboard" else {"startupProbe": "/live", "livenessProbe": "/live"}
        assert asked == {**alive, "readinessProbe": "/ready"}, name
        assert all((probe.get("httpGet") or probe["tcpSocket"])["port"] == "web" for probe in probes.values()), name
        ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        assert set(ports.values()) <= set(container["args"]), name
        health = str(COMPOSE["services"][name.removeprefix("hearsay-")]["healthcheck"]["test"])
        assert re.findall(r"127\.0\.0\.1:(\d+)(/\w+)", health) == [(ports["web"], "/ready")]


def test_prometheus_scrapes_workers_and_gateways_where_they_serve_metrics() -> None:
    configured = document(DEPLOY / "monitoring" / "prometheus.yaml")["scrape_configs"]
    assert {"/live", "/ready", "/metrics"} == set(worker_pages(Health()))
    found = {}
    for scraped in configured:
        (target,) = scraped["dns_sd_configs"]
        assert scraped["metrics_path"] == "/metrics"
        (found[scraped["job_name"]],) = target["names"]
        command = COMPOSE["services"][found[scraped["job_name"]]]["command"]
        # A worker's port is 6066 where none is given.
        assert "--web-host" in command and target["port"] == 6066 and command[-1] in ("0.0.0.0", "6066")
    assert found == {"hearsay": "worker", "hearsay-gateway": "gateway"}
    asked = {job for expression in expressions() for job in re.findall(r'job="([^"]+)"', expression)}
    assert asked == found.keys()
    annotated = {
        manifest["metadata"]["name"]: manifest["spec"]["template"]["metadata"].get("annotations")
        for manifest in WORKLOADS
        if manifest["kind"] != "Job"
    }
    wanted = {"prometheus.io/scrape": "true", "prometheus.io/port": "6066", "prometheus.io/path": "/metrics"}
    assert annotated == {"hearsay-worker": wanted, "hearsay-gateway": wanted, "hearsay-dashboard": None}


def test_processes_have_no_privileges_and_limited_memory() -> None:
    assert "USER 10001" in DOCKERFILE
    for name, pod in PODS.items():
        assert pod["securityContext"]["runAsNonRoot"], name
        assert not pod["enableServiceLinks"], "variables of a service hearsay-kafka would be taken for settings"
        for container in pod["containers"]:
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"], name
            assert container["resources"]["limits"]["memory"], name
            assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]], (
                "compiled loops are kept there"
            )
    assert all(service["read_only"] and service["tmpfs"] == ["/tmp"] for service in ours().values())


def test_the_image_and_the_package_have_every_room_and_nothing_of_a_run() -> None:
    """What runs leave beside the rooms (pages, journals) must not be installed, nor given to others."""
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "bench", "scripts"}
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    of_runs = ("hearsay-data", "hearsay-data.demo.reports")
    ours = ("tests", "bench", "scripts", *of_runs, *rooms, *(f"{room}.inner" for room in rooms))
    taken = {name for name in ours if any(fnmatchcase(name, pattern) for pattern in found)}
    inside = {f"{room}.inner" for room in rooms}
    assert taken == rooms | inside and "deploy" in found
    copied = set(re.findall(r"^COPY (\w+) \1$", DOCKERFILE, flags=re.MULTILINE))
    assert copied == rooms
    assert "--constraint constraints.txt" in DOCKERFILE
    let_in = set(re.findall(r"^!(.+)$", (DEPLOY / "container" / "Dockerfile.dockerignore").read_text(), re.MULTILINE))
    others = {"deploy/kafka", "deploy/container/slim.sh", "constraints.txt", "pyproject.toml", "README.md", "LICENSE"}
    pages = {
        f"clients/javascript/{path.name}" for path in (ROOT / "hearsay/serving/assets").iterdir() if path.is_symlink()
    }
    assert rooms | others | pages | {"clients/python"} == let_in
    assert all((ROOT / path).exists() for path in let_in)


def test_the_broker_is_the_one_that_was_tested_and_the_memo_store_forgets_nothing() -> None:
    tested = re.findall(r"<version>([\d.]+)</version>", (DEPLOY / "kafka" / "pom.xml").read_text())[0]
    kafka, redis = COMPOSE["services"]["kafka"], COMPOSE["services"]["redis"]
    assert image_of(kafka) == f"apache/kafka:{tested}"
    assert kafka["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    options = dict(zip(redis["command"][1::2], redis["command"][2::2], strict=True))
    assert options == {"--appendonly": "yes", "--appendfsync": "always", "--maxmemory-policy": "noeviction"}
    published = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert published and all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize("expression", expressions())
def test_alerts_and_dashboard_ask_for_metrics_that_there_are(expression: str) -> None:
    known = exported()
    named = set(re.findall(r"\b(?:hearsay|process)_\w+", expression))
    assert named <= known.keys()
    assert named or "up{" in expression
    everywhere = {"job", "instance"}  # Prometheus adds them
    for metric, selector in re.findall(r"\b((?:hearsay|process)_\w+)\{([^}]*)\}", expression):
        assert set(re.findall(r"(\w+)\s*[=!]", selector)) <= known[metric] | everywhere
    grouped = {label for labels in re.findall(r"\bby \(([^)]*)\)", expression) for label in labels.split(", ")}
    assert grouped <= everywhere.union(*(known[metric] for metric in named))
    for operator, outcomes in re.findall(r'outcome(=|!~)"([^"]+)"', expression):
        outcomes_known = {"counted", *(reason.value for reason in Reason), *(outcome.value for outcome in Outcome)}
        assert set(outcomes.split("|")) <= outcomes_known, operator
    assert expression.count("(") == expression.count(")")


def test_every_metric_of_ours_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    ours = {re.sub("_(bucket|sum|count)$", "", name) for name in exported() if name.startswith("hearsay_")}
    missing = {name for name in ours if name not in shown}
    assert not missing, f"add a panel to deploy/monitoring/dashboard.json for {', '.join(sorted(missing))}"


def test_every_alert_says_what_happened_and_what_to_do_and_every_case_is_of_one() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert {case["name"].split()[0] for case in CASES} == set(NAMES)
    for rule in ALERTS:
        assert set(rule["annotations"]) == {"summary", "action", "runbook_url"}, rule["alert"]
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]


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


def base(kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in MANIFESTS if each["kind"] == kind and each["metadata"]["name"] == name]
    return dict(found)


def patches(overlay: str) -> Iterator[dict[str, Any]]:
    for patch in kustomization(overlay)["patches"]:
        yield from documents(KUBERNETES / overlay / patch["path"])


def test_an_edge_on_kubernetes_has_a_declaration_that_holds_and_reads_only_what_is_mounted() -> None:
    found = [each for path in (KUBERNETES / "edge").glob("*.yaml") for each in documents(path)]
    named = {(each["kind"], each["metadata"]["name"]): each for each in found if "metadata" in each}
    declared = named["ConfigMap", "hearsay-edge-declaration"]["data"]
    parse_edge(declared["edge.yaml"], "edge.yaml").options(parse_survey(declared["survey.yaml"]))
    given = named["ConfigMap", "hearsay-edge-settings"]["data"]
    assert set(given) <= settings()
    pod = named["StatefulSet", "hearsay-edge"]["spec"]["template"]["spec"]
    parsed(pod["containers"][0]["args"])
    readme = (KUBERNETES / "README.md").read_text()
    sources = [source["secret"] for source in pod["volumes"][0]["projected"]["sources"]]
    mounted = {f"/run/secrets/hearsay/{item['path']}" for source in sources for item in source["items"]}
    assert {value for value in given.values() if value.startswith("/run/secrets/")} == mounted
    assert all(f"create secret generic {source['name']} " in readme for source in sources)


@pytest.mark.parametrize("overlay", ["base", "edge", *OVERLAYS])
def test_a_kustomization_names_every_file_of_its_directory(overlay: str) -> None:
    told = kustomization(overlay)
    named = {*told["resources"], *(patch["path"] for patch in told.get("patches", []))} - {"../base"}
    assert named == {path.name for path in (KUBERNETES / overlay).glob("*.yaml")} - {"kustomization.yaml"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_an_overlay_changes_is_in_the_base_and_what_it_sets_exists(overlay: str) -> None:
    for patch in patches(overlay):
        original = base(patch["kind"], patch["metadata"]["name"])
        if patch["kind"] == "ConfigMap":
            removed = {name for name, value in patch["data"].items() if value is None}
            assert removed <= set(original["data"]), "nothing to remove"
            assert set(patch["data"]) <= settings()
        for container in patch["spec"]["template"]["spec"]["containers"] if "template" in patch.get("spec", {}) else []:
            (changed,) = original["spec"]["template"]["spec"]["containers"]
            assert container["name"] == changed["name"]
            assert {each["name"] for each in container["env"] if "$patch" in each} <= {
                each["name"] for each in changed["env"]
            }
            assert {variable["name"] for variable in container["env"]} <= settings()
            if "args" in container:
                parsed(container["args"])


def test_strimzi_makes_the_topics_that_hearsay_would_and_a_user_for_every_role() -> None:
    path = KUBERNETES / "strimzi" / "kafka.yaml"
    made_by = path.read_text().splitlines()[0].removeprefix("# Made by: ")
    told = parsed(made_by.split()[1:])
    topics = Topics(told["prefix"], told["partitions"], told["merge_partitions"], told["retention_days"])
    assert documents(path) == resources(topics, told["cluster"], told["replication"]), (
        f"run again: {made_by} > {path.relative_to(ROOT)}"
    )
    without_strimzi = parsed(base("Job", "hearsay-topics")["spec"]["template"]["spec"]["containers"][0]["args"])
    same = ("partitions", "merge_partitions", "retention_days", "replication")
    assert [told[name] for name in same] == [without_strimzi[name] for name in same]


def test_pods_log_in_as_users_whose_passwords_they_have() -> None:
    made = documents(KUBERNETES / "strimzi" / "kafka.yaml")
    users = {each["metadata"]["name"] for each in made if each["kind"] == "KafkaUser"}
    assert users == {f"hearsay-{role.name}" for role in roles(Topics())}
    (check,) = [patch for patch in patches("strimzi") if patch["kind"] == "Job"]
    for manifest in [*WORKLOADS, check]:
        pod = manifest["spec"]["template"]["spec"]
        (user,) = [each["value"] for each in pod["containers"][0]["env"] if each["name"].endswith("SASL_USERNAME")]
        assert user in {source["secret"]["name"] for source in pod["volumes"][0]["projected"]["sources"]}
        assert user in users or (user == "hearsay-admin" and manifest["kind"] == "Job")


def test_nobody_may_create_topics_and_every_right_is_on_something_that_exists() -> None:
    topics = Topics()
    rights = [(role.name, right) for role in roles(topics) for right in role.rights]
    assert all(set(right.operations) <= {"Read", "Write", "Describe", "DescribeConfigs"} for _, right in rights)
    existing = {("topic", topic.name) for topic in topics.all()} | {("group", topics.prefix)}
    assert {(right.resource, right.name) for _, right in rights} == existing, "none is on all of them"
    of_reports = [(name, right.operations) for name, right in rights if right.name == "hearsay.reports"]
    assert {name for name, allowed in of_reports if "Read" in allowed} == {"worker", "operator"}
    assert {name for name, allowed in of_reports if "Write" in allowed} == {"gateway", "edge", "worker", "operator"}


def test_pods_reach_kafka_and_a_name_server_and_nothing_else() -> None:
    assert base("Namespace", "hearsay")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    policy = base("NetworkPolicy", "hearsay")["spec"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"} and "ingress" not in policy
    selected = policy["podSelector"]["matchLabels"].items()
    for manifest in WORKLOADS:
        labels = manifest["spec"]["template"]["metadata"]["labels"]
        assert selected <= labels.items(), f"{manifest['metadata']['name']} may talk to anybody"
    changed = {patch["kind"]: patch for patch in patches("strimzi")}
    for egress, data in (
        (policy["egress"], base("ConfigMap", "hearsay-settings")["data"]),
        (changed["NetworkPolicy"]["spec"]["egress"], changed["ConfigMap"]["data"]),
    ):
        names, kafka = egress
        assert {port["port"] for port in names["ports"]} == {53}
        port = int(data["HEARSAY_KAFKA_BOOTSTRAP"].rpartition(":")[2])
        assert kafka["to"] and [each["port"] for each in kafka["ports"]] == [port]


@pytest.mark.parametrize(
    ("policy", "kind", "name", "port"),
    [
        ("hearsay-metrics", "Deployment", "hearsay-worker", "web"),
        ("hearsay-metrics", "StatefulSet", "hearsay-gateway", "web"),
        ("hearsay-reports", "StatefulSet", "hearsay-gateway", "reports"),
        ("hearsay-gateway-keys", "StatefulSet", "hearsay-gateway", "keys"),
        ("hearsay-dashboard", "Deployment", "hearsay-dashboard", "web"),
    ],
)
def test_a_policy_opens_the_port_that_is_served_and_not_to_everybody(
    policy: str, kind: str, name: str, port: str
) -> None:
    spec, template = base("NetworkPolicy", policy)["spec"], base(kind, name)["spec"]["template"]
    assert spec["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (rule,), (container,) = spec["ingress"], template["spec"]["containers"]
    served = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert [each["port"] for each in rule["ports"]] == [served[port]]
    assert rule["from"]


def test_there_are_no_default_credentials() -> None:
    """A password, a key or a token is never written down: it is in a file, whose name is a setting."""
    secret_settings = {f"HEARSAY_KAFKA_{name}".upper() for name in KafkaSettings.model_fields if "password" in name}
    secret_settings |= {"HEARSAY_CLOCK_KEY", "HEARSAY_PRESENCE_KEY", "HEARSAY_REDIS_PASSWORD"}
    secret_settings = {name for name in secret_settings if not name.endswith("_FILE")}
    for path in sorted(DEPLOY.rglob("*")):
        if path.suffix in (".yaml", ".json", ".sh", ".properties") or "Dockerfile" in path.name:
            text = path.read_text()
            for name in secret_settings:
                assert not re.search(rf"\b{name}\b(?!_FILE)", text), f"{path} sets {name}"
            assert not re.search(r"(?i)\b(requirepass|masterauth|user_\w+=|admin:admin|[0-9a-f]{32,}\b)", text), path
    assert "Secret" not in {manifest["kind"] for manifest in MANIFESTS}
    for pod in PODS.values():
        for volume in pod["volumes"]:
            for source in volume.get("projected", {}).get("sources", []):
                assert not source["secret"].get("optional"), "a pod would start without its secrets"


def test_every_image_is_a_parameter_that_a_release_names_by_its_digest() -> None:
    script = (ROOT / "scripts" / "image-digests.sh").read_text()
    assert sorted(COMPOSE["x-images"]) == sorted({service["image"] for service in COMPOSE["services"].values()})
    for name, service in COMPOSE["services"].items():
        (parameter,) = re.findall(r"^\$\{IMAGE_([A-Z]+):-", service["image"])
        assert re.search(rf"\b{parameter.lower()}\b", script), name
    told = kustomization("base")["images"]
    assert told == [{"name": "hearsay", "newName": "hearsay", "newTag": version(DISTRIBUTION)}]
    used = {container["image"] for pod in PODS.values() for container in pod["containers"]}
    assert used == {"hearsay"}, "without a tag"
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE}", "${BASE}"]
