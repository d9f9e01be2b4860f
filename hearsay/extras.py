"""The parts that an installation without extras leaves out: which extra a command needs.

`uvx --from . hearsay demo` names no extra, and uvx is there to fetch what a command needs: under it, the command is
started again with its extra.
"""

import os
import sys
from importlib.metadata import distribution, version
from importlib.util import find_spec
from pathlib import Path

from protocols.errors import HearsayError
from servers.distribution import DISTRIBUTION, pip_install, recorded_origin

EXTRAS = {
    "dashboard": ["dashboard"],
    "gateway": ["gateway"],
    "lab": ["audit", "dossier", "evaluate", "people", "synthesize"],
    "replay": ["edge", "replay", "send"],
    "run": ["demo", "forecast", "run", "serve", "stack"],
    "worker": ["close", "deadletters", "recover", "sinks", "topics", "views", "worker"],
}
OF_COMMANDS = {command: extra for extra, commands in EXTRAS.items() for command in commands}
OF_PACKAGES = {"kafka": "kafka", "pyarrow": "tables", "scipy": "lab"}
AGAIN = "FETCHED_FOR_HEARSAY"


class MissingExtra(HearsayError):
    """A package is not installed that an extra of hearsay has."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}, which is not installed", pip_install(extra))
        self.extra = extra


def rooms() -> set[str]:
    """The top-level packages of this one."""
    return set((distribution(DISTRIBUTION).read_text("top_level.txt") or "").split())


def strangers() -> dict[str, str]:
    """The top-level packages that are not ours although they have names of ours, and where they are.

    A device is a package of its own too: its copy may be in use.
    """
    home = Path(__file__).parents[1]
    specs = {name: find_spec(name) for name in sorted(rooms() - {"hearsay_device"})}
    places = {name: [*(spec.submodule_search_locations or [str(spec.origin)])] for name, spec in specs.items() if spec}
    return {name: place for name, (place, *_) in places.items() if Path(place).parent != home}


def explained(error: ModuleNotFoundError, command: str) -> MissingExtra | None:
    """That a command, or a name of the library, needs an extra. None if a module of ours is missing: that is a bug."""
    package = (error.name or "").partition(".")[0]
    if not package or package in rooms():
        return None
    return MissingExtra(package, OF_COMMANDS.get(command) or OF_PACKAGES.get(package, "all"))


def fetch(extra: str) -> None:
    """Under uvx, become the same command with this extra; elsewhere, return."""
    uv = os.environ.get("UV")
    if uv is None or "UV_RUN_RECURSION_DEPTH" in os.environ or AGAIN in os.environ:  # the second is of `uv run`
        return
    origin = recorded_origin()
    named = f"{DISTRIBUTION}[{extra}]"
    wanted = f"{named} @ {origin}" if origin else f"{named}=={version(DISTRIBUTION)}"
    sys.stderr.write(f"hearsay: fetching what this command needs, once: the extra {extra!r}\n")
    os.execve(uv, [uv, "tool", "run", "--from", wanted, "hearsay", *sys.argv[1:]], {**os.environ, AGAIN: extra})
