"""Images that stand in for those of a registry: Kafka, Redis and Prometheus on the base, made here."""

from __future__ import annotations

import shutil

from servers.kafka_jars import DEPLOY as KAFKA
from servers.kafka_jars import kafka_jars
from tests.deploy_test import podman
from tests.deploy_test.workplace import ROOT, Workplace

IMAGES = ROOT / "tests" / "deploy_test" / "images"


def stand_in(place: Workplace, name: str) -> str:
    """The image that stands in for one, built once in a run."""
    if name not in place.made:
        context = place.path("contexts", name)
        context.mkdir(exist_ok=True)
        if name == "kafka":
            shutil.copytree(kafka_jars(), context / "jars", dirs_exist_ok=True)
            shutil.copy(KAFKA / "log4j2.xml", context)
            shutil.copy(IMAGES / "kafka.sh", context)
        place.made[name] = podman.build(place, IMAGES / f"{name}.Containerfile", f"localhost/{name}:test", context)
    return place.made[name]
