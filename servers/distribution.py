"""The name under which this program is installed, and what else is installed under the name that it had.

The command and the import are called `hearsay`. The distribution is not: on the public index of Python packages that
is a program of somebody else. A hint with that name would install foreign code into a process that holds keys.

Version 0.2 was called `hearsay`, too. Both own files of the folder `hearsay`, so to uninstall one of two deletes files
of the other.
"""

import json
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DISTRIBUTION = "hearsay-ldp"

FORMER = "hearsay"
"""The name of the distribution up to version 0.2, which was never on an index."""


def pip_install(extra: str = "") -> str:
    """The command that installs this program, with an extra.

    >>> pip_install("run")
    "pip install 'hearsay-ldp[run]'"
    """
    wanted = f"{DISTRIBUTION}[{extra}]" if extra else DISTRIBUTION
    return f"pip install '{wanted}'"


OURS = "memo_store"
"""A top-level package that version 0.2 has, and no other program called `hearsay`."""


@dataclass(frozen=True)
class FormerName:
    """A distribution called `hearsay` that shares this program's environment."""

    version: str
    ours: bool

    @property
    def what(self) -> str:
        owner = "an older version of this program" if self.ours else "a program of somebody else"
        return f"{FORMER} {self.version} is installed here, too: {owner}, with files of the same names"

    @property
    def cure(self) -> str:
        """Two commands, in their order: the first deletes files that the second puts back."""
        origin = recorded_origin()
        wanted = f"{DISTRIBUTION} @ {origin}" if origin else DISTRIBUTION
        return f"run `pip uninstall --yes {FORMER} {DISTRIBUTION}`, then `pip install '{wanted}'`"


def folders_of_packages() -> list[Path]:
    """Where this environment has its packages, and where this program lies, which may be elsewhere."""
    return sorted({Path(sysconfig.get_path("purelib")), Path(__file__).parents[1]})


def former_name(folders: Sequence[Path] = ()) -> FormerName | None:
    """The distribution of the former name, if there is one.

    Every command asks. So this lists two folders: to import importlib.metadata takes 60 ms.
    """
    for folder in folders or folders_of_packages():
        for metadata in folder.glob(f"{FORMER}-[0-9]*.dist-info"):
            version = metadata.name.removesuffix(".dist-info").partition("-")[2]
            return FormerName(version, ours=OURS in _packages(metadata))
    return None


def _packages(metadata: Path) -> list[str]:
    listed = metadata / "top_level.txt"
    return listed.read_text("utf-8").split() if listed.is_file() else []


def recorded_origin() -> str | None:
    """The file or folder that this program was installed from; None if it was from an index, or is not installed.

    It is not installed if the clone that version 0.2 was installed from has the files of a later one.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        recorded = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    origin: str | None = json.loads(recorded or "{}").get("url")
    return origin
