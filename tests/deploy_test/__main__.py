"""Run what deploy/ has: `make deploy-test`, or `python -m tests.deploy_test --only image,compose`.

One line for each step: its result, its name, its time, and what was found. A step whose tools are missing is skipped,
and the tools are named. The exit code is 1 if a step failed. What a run that failed leaves (a log of every command and
its output) stays in the directory that is printed first; containers, networks and images are always removed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.deploy_test import compose, image, manifests, monitoring, podman, release, strimzi, tools
from tests.deploy_test.tools import Tool
from tests.deploy_test.workplace import StepFailed, Workplace


@dataclass(frozen=True)
class Step:
    """A step: what it needs, and what it does."""

    needs: tuple[Tool, ...]
    run: Callable[[Workplace], str]

    @property
    def missing(self) -> list[str]:
        """What is not installed."""
        return [str(tool) for tool in self.needs if not tool.present()]


STEPS = {
    "alerts": Step((tools.PROMTOOL,), monitoring.step),
    "schemas": Step((tools.SCHEMAS,), manifests.against_schemas),
    "kubernetes": Step(tools.API_SERVER, manifests.step),
    "strimzi": Step((*tools.API_SERVER, tools.MAVEN, tools.JAVA_21), strimzi.step),
    "image": Step(tools.CONTAINERS, image.step),
    "release": Step((*tools.CONTAINERS, tools.BILLS), release.step),
    "compose": Step((*tools.CONTAINERS, *tools.COMPOSE, tools.MAVEN), compose.step),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.deploy_test")
    parser.add_argument("--only", default=",".join(STEPS), help=f"steps, separated by commas: {', '.join(STEPS)}")
    parser.add_argument("--keep", action="store_true", help="keep the directory of the run")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(STEPS):
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    place = Workplace(Path(tempfile.mkdtemp(prefix="hearsay-deploy-")))
    print(f"the log is {place.log}", flush=True)
    try:
        results = [run(place, name, STEPS[name]) for name in names]
    finally:
        podman.clean(place)
    counts = {result: results.count(result) for result in ("ok", "failed", "skipped")}
    print(", ".join(f"{count} {result}" for result, count in counts.items()), flush=True)
    if counts["failed"]:
        sys.exit(1)
    if not options.keep:
        place.remove()


def run(place: Workplace, name: str, step: Step) -> str:
    """Run one step and print its line."""
    began = time.monotonic()

    def say(result: str, text: str) -> str:
        print(f"{result:8} {name:12} {time.monotonic() - began:7.1f} s  {text}", flush=True)
        return result

    if step.missing:
        return say("skipped", f"not installed: {', '.join(step.missing)}")
    try:
        return say("ok", step.run(place))
    except StepFailed as failed:
        return say("failed", str(failed))
    except Exception as error:  # the other steps go on
        place.note(repr(error))
        return say("failed", f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
