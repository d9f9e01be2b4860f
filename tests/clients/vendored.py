"""The device library as `/try` serves it: `python -m tests.clients.vendored` writes the files again.

The files are those of the library and of the packages that it uses, with one change: packages are imported by path.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.helpers.node import LIBRARY

ASSETS = Path(__file__).parents[2] / "hearsay" / "serving" / "assets" / "device"
PACKAGES = {
    "ciphers": ("aes.js", "_polyval.js", "utils.js", "LICENSE"),
    "hashes": ("sha2.js", "_md.js", "_u64.js", "utils.js", "hmac.js", "LICENSE"),
}


def library() -> dict[str, str]:
    """The library's own files, by their path."""
    found = {}
    for file in sorted((LIBRARY / "src").rglob("*.js")):
        path = file.relative_to(LIBRARY / "src")
        if path.name != "file.js":  # it is for Node.js
            up = "../" * (len(path.parts) - 1) or "./"
            found[str(path)] = re.sub(r'"@noble/', f'"{up}noble/', file.read_text())
    return found


def packages() -> dict[str, str]:
    """The packages' files."""
    return {
        f"noble/{package}/{name}": (LIBRARY / "node_modules" / "@noble" / package / name).read_text()
        for package, names in PACKAGES.items()
        for name in names
    }


def main() -> None:
    for path, text in {**library(), **packages()}.items():
        (ASSETS / path).parent.mkdir(parents=True, exist_ok=True)
        (ASSETS / path).write_text(text)


if __name__ == "__main__":
    main()
