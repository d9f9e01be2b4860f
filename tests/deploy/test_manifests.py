"""The overlays, the network policies and Strimzi's resources say the same as the code and the base."""

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from hearsay.commands.operations.topics import resources
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, roles
from tests.deploy.test_deploy import COMPOSE, DEPLOY, MANIFESTS, ROOT, WORKLOADS, settings
from tests.helpers.command_line import resolve

KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = ("strimzi", "tls")


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def base(kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in MANIFESTS if each["kind"] == kind and each["metadata"]["name"] == name]
    return dict(found)


def patches(overlay: str) -> Iterator[dict[str, Any]]:
    for patch in yaml.safe_load((KUBERNETES / overlay / "kustomization.yaml").read_text())["patches"]:
        yield from documents(KUBERNETES / overlay / patch["path"])


@pytest.mark.parametrize("overlay", ["base", *OVERLAYS])
def test_a_kustomization_names_every_file_of_its_directory(overlay: str) -> None:
    told = yaml.safe_load((KUBERNETES / overlay / "kustomization.yaml").read_text())
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
                command, own = resolve(list(container["args"]))
                command.make_context("hearsay", own)  # parses, and does nothing


def test_strimzi_makes_the_topics_that_hearsay_would_and_a_user_for_every_role() -> None:
    path = KUBERNETES / "strimzi" / "kafka.yaml"
    made_by = path.read_text().splitlines()[0].removeprefix("# Made by: ")
    words = made_by.split()[1:]
    command, own = resolve(list(words))
    told = command.make_context("hearsay", own).params
    topics = Topics(told["prefix"], told["partitions"], told["merge_partitions"], told["retention_days"])
    assert documents(path) == resources(topics, told["cluster"], told["replication"]), (
        f"run again: {made_by} > {path.relative_to(ROOT)}"
    )
    create, own = resolve(list(base("Job", "hearsay-topics")["spec"]["template"]["spec"]["containers"][0]["args"]))
    without_strimzi = create.make_context("hearsay", own).params
    same = ("partitions", "merge_partitions", "retention_days", "replication")
    assert [told[name] for name in same] == [without_strimzi[name] for name in same]


def test_pods_log_in_as_users_whose_passwords_they_have() -> None:
    made = documents(KUBERNETES / "strimzi" / "kafka.yaml")
    users = {each["metadata"]["name"] for each in made if each["kind"] == "KafkaUser"}
    assert users == {f"hearsay-{role.name}" for role in roles(Topics())}
    (check,) = [patch for patch in patches("strimzi") if patch["kind"] == "Job"]
    for manifest in [*(each for each in MANIFESTS if each["kind"] in WORKLOADS), check]:
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
    for manifest in MANIFESTS:
        if manifest["kind"] in WORKLOADS:
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
    for manifest in MANIFESTS:
        assert manifest["kind"] != "Secret"
        for volume in manifest.get("spec", {}).get("template", {}).get("spec", {}).get("volumes", []):
            for source in volume.get("projected", {}).get("sources", []):
                assert not source["secret"].get("optional"), "a pod would start without its secrets"


def test_every_image_is_a_parameter_that_a_release_names_by_its_digest() -> None:
    script = (ROOT / "scripts" / "image-digests.sh").read_text()
    assert sorted(COMPOSE["x-images"]) == sorted({service["image"] for service in COMPOSE["services"].values()})
    for name, service in COMPOSE["services"].items():
        (parameter,) = re.findall(r"^\$\{IMAGE_([A-Z]+):-", service["image"])
        assert re.search(rf"\b{parameter.lower()}\b", script), name
    told = yaml.safe_load((KUBERNETES / "base" / "kustomization.yaml").read_text())["images"]
    assert told == [{"name": "hearsay", "newName": "hearsay", "newTag": version("hearsay")}]
    pods = [found["spec"]["template"]["spec"] for found in MANIFESTS if "template" in found.get("spec", {})]
    assert {container["image"] for pod in pods for container in pod["containers"]} == {"hearsay"}  # without a tag
    dockerfile = (DEPLOY / "container" / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE) == ["${BASE}", "${BASE}"]
