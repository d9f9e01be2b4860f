"""Documents of earlier releases become those of this one (tests/clients/test_migration.py)."""

from __future__ import annotations

from typing import Any

from hearsay_device.terms import DAY

FORMAT = 4


def migrated(document: dict[str, Any]) -> dict[str, Any]:
    """The document in today's format. Keys of questions, cells, charges and owed bytes stay as they are."""
    if document["format"] == 3:
        document = _from_3(document)
    if document["format"] != FORMAT:
        raise ValueError(
            f"it has format {document['format']}, and this release knows {FORMAT}: use the release that wrote it"
        )
    return document


def _from_3(document: dict[str, Any]) -> dict[str, Any]:
    """Release 0.2 stored the key of each survey's next period. Whoever copied it read what came later."""
    last_day = document.pop("day") * DAY
    # No start of a machine has this name, so the days since then count as of a machine that was off.
    lived = {"seconds": float(last_day), "clock": float(last_day), "start": "", "uptime": 0.0}
    for joined in document["surveys"].values():
        joined.pop("key", None)
        joined.pop("key_period", None)
        _note_history(joined, joined.pop("attempted"))
        joined["owed"] = [_owed_from_3(owed) for owed in joined.get("owed", [])]
    return {**document, "format": FORMAT, "lived": lived}


def _note_history(joined: dict[str, Any], attempted: int | None) -> None:
    """Which periods are known to be settled: the last ones that were sent, owed and settled."""
    owed = {each["period"] for each in joined.get("owed", [])}
    known = sorted((owed | {attempted, joined["settled"]}) - {None})
    history = [[period, period] for period in known]
    if history:
        history[0][0] = 0  # of all before the first of them nothing is known
    joined.update(history=history, spent=[], dropped=[])


def _owed_from_3(owed: dict[str, Any]) -> dict[str, Any]:
    """It was due two seconds after it was settled, at most."""
    kept = {name: owed[name] for name in ("period", "report", "says", "unlisted")}
    return {**kept, "due": owed["not_before"], "attempts": int(owed["attempted"])}
