"""Both device libraries as a program for `hearsay audit --device`: `python -m tests.clients.program LIBRARY [DEFECT]`.

With a defect, the report that the library settled is changed, or what the library draws is. With `apart` in its place,
each report is sent at a moment of its own, and the program says when it is to be called again.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.request import Request, urlopen

from hearsay_device import DeviceError, Limits
from tests.clients.cases import ANY
from tests.clients.libraries import Clock, open_device, store, stored

APART = "apart"
MANY = "--devices 150 --periods 4"
DEFECTS = {
    "token without period": ("token-twice", "--devices 4 --periods 2"),
    "gap tells value": ("gap-untrue", "--devices 4 --periods 2"),
    "memos drawn anew": ("memo-changed", MANY),
    "constant secret": ("same-secret", "--devices 4 --periods 1"),
    "constant noise": ("same-secret", "--devices 150 --periods 1"),
    "truth": ("loss-above-promise", "--devices 100 --periods 1"),
    "late if first": ("beside-the-answers", "--devices 100 --periods 1"),
    "header tells value": ("beside-the-answers", "--devices 100 --periods 1"),
}
"""What can be planted, what an audit must call it, and with how many devices it is sure to."""


def main(library: str, defect: str | None = None) -> None:
    started: set[str] = set()
    for line in sys.stdin:
        told = json.loads(line)
        path, clock = Path(told["state"]), Clock(told["at"])
        if defect == "memos drawn anew" and path.exists() and told["state"] not in started:
            forget_keys(library, path)
        started.add(told["state"])
        entropy = told["survey"] + path.name if defect in ("constant secret", "constant noise") else None
        try:
            with open_device(library, path, clock, Limits(**ANY), entropy) as device:
                if defect == APART:
                    print(json.dumps(sent_apart(device, told, clock)), flush=True)
                    continue
                if defect is None:
                    device.send(told["gateway"], told["survey"], told["values"])
                else:
                    send_changed(device, told, defect)
            if defect == "late if first":
                clock.wait(float("a" in told["values"].values()))
            print(json.dumps({"at": clock.seconds}), flush=True)
        except DeviceError as error:
            print(json.dumps({"refused": str(error)}), flush=True)


def sent_apart(device: Any, told: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """One call of an app: what it says to the audit."""
    refused = {}
    try:
        again_at = device.send(told["gateway"], told["survey"], told["values"], apart=True).again_at
    except DeviceError as error:
        again_at = error.again_at
        refused = {"refused": str(error)}
    return {"at": clock.seconds, "again_at": again_at, **refused}


def send_changed(device: Any, told: dict[str, Any], defect: str) -> None:
    with urlopen(f"{told['gateway']}/v1/surveys/{told['survey']}") as answer:
        terms = answer.read()
    device.join(terms, trust_first_use=True)
    made = device.settle(told["survey"], told["values"])
    report, asked = json.loads(made.report), json.loads(terms)["declared"]["attributes"]
    places = {each["name"]: each["values"].index(told["values"][each["name"]]) for each in asked}
    if defect == "token without period":
        report["token"] = sha256(told["state"].encode()).hexdigest()[:16]
    elif defect == "constant noise":
        report["token"] = token_hex(8)
    elif defect == "gap tells value":
        report["gap"] = f"{1 + next(iter(places.values())):04x}"
    elif defect == "truth":
        report["answers"] = {name: f"{places[name]:02x}" for name in report["answers"]}
    data = json.dumps(report, separators=(",", ":")).encode()
    headers = {"content-type": "application/vnd.hearsay.report+json"}
    if defect == "header tells value":
        headers["x-trace"] = f"{sum(places.values()):032x}"
    urlopen(Request(f"{told['gateway']}/v1/reports", data, headers)).close()
    device.confirm(told["survey"], made.period)


def forget_keys(library: str, path: Path) -> None:
    """Memos are derived from the keys of questions: without them they are drawn anew."""
    store(library, path, {**stored(library, path), "keys": {}})


if __name__ == "__main__":
    main(*sys.argv[1:])
