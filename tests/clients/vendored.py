"""The packages that the device library uses, as `/try` serves them: `python -m tests.clients.vendored` writes them."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.node import LIBRARY

ASSETS = Path(__file__).parents[2] / "hearsay" / "serving" / "assets" / "noble"
PACKAGES = {
    "ciphers": ("aes.js", "_polyval.js", "utils.js", "LICENSE"),
    "hashes": ("sha2.js", "_md.js", "_u64.js", "utils.js", "hmac.js", "LICENSE"),
}


def packages() -> dict[str, str]:
    """The packages' files, by their path."""
    return {
        f"{package}/{name}": (LIBRARY / "node_modules" / "@noble" / package / name).read_text()
        for package, names in PACKAGES.items()
        for name in names
    }


def main() -> None:
    for path, text in packages().items():
        (ASSETS / path).parent.mkdir(parents=True, exist_ok=True)
        (ASSETS / path).write_text(text)


if __name__ == "__main__":
    main()
