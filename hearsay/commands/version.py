"""`hearsay version`."""

from __future__ import annotations

from importlib.metadata import version as installed

from hearsay.terminal import console


def version(as_json: console.AsJson = False) -> None:
    """Print the version.

    Example: hearsay version
    """
    if as_json:
        console.print_json({"hearsay": installed("hearsay")})
    else:
        console.out.print(f"hearsay {installed('hearsay')}")
