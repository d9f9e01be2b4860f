"""`/try`: the pages of a device in the browser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gateway.service import Page
from protocols.scheme import Scheme


def try_pages(schemes: Mapping[str, Scheme], results: Path) -> dict[str, Page]:
    return {}
